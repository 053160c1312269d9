const limits = { patterns: 200, length: 200, stars: 4 };

/**
 * Which folders the `workspaces` of a package.json mean, relative to that: names with `*` for a part of one name and
 * `**` for any number of folders, and with `!` before them to leave folders out. Braces and classes are taken literally.
 */
export function workspaceMatcher(workspaces: unknown): (folder: string) => boolean {
  const listed: unknown = Array.isArray(workspaces)
    ? workspaces
    : (workspaces as { packages?: unknown } | null)?.packages;
  const patterns = (Array.isArray(listed) ? listed : [])
    .filter((each): each is string => typeof each === "string" && each.length <= limits.length)
    .filter((each) => each.split("*").length <= 2 * limits.stars)
    .slice(0, limits.patterns)
    .map((text) => ({ isOut: text.startsWith("!"), expression: expressionOf(text) }));
  return (folder) => {
    if (folder.split("/").includes("node_modules")) return false;
    const last = patterns.findLast(({ expression }) => expression.test(`${folder}/`));
    return last !== undefined && !last.isOut;
  };
}

function expressionOf(pattern: string): RegExp {
  const path = pattern
    .replace(/^!/, "")
    .replace(/^(?:\.?\/)+/, "")
    .replace(/\/+$/, "");
  const parts = path
    .split("/")
    .map((part) =>
      part === "**"
        ? "(?:[^/]+/)*"
        : part.replace(/[.+^${}()|[\]\\?]/g, "\\$&").replace(/\*+/g, "[^/]*") + "/",
    );
  return new RegExp(`^${parts.join("")}$`);
}
