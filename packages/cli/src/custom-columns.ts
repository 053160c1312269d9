/** Tables of one's own (`kubectl get -o custom-columns=NAME:.metadata.name,RUNTIME:.spec.runtime`), as kubectl draws them. */
import { findInPath, shownValue } from "./json-path-steps.ts";
import { UserError } from "./user-error.ts";

interface Column {
  title: string;
  path: string;
}

/** Of kubectl's tables. */
const padding = 3;
const minWidth = 6;

/** Throws a UserError for what is not a list of titles with paths. */
export function columnsIn(text: string): Column[] {
  return text.split(",").map((part) => {
    const [, title = "", path = ""] = /^([^:]+):(.+)$/.exec(part) ?? [];
    const bare = path.replace(/^\{([^]*)\}$/, "$1");
    if (bare === "")
      throw new UserError(
        `${part || text} is not a column`,
        "write them as in custom-columns=NAME:.metadata.name,RUNTIME:.spec.runtime",
      );
    return { title, path: bare };
  });
}

/** Lines of a table; a value that is not there is `<none>`. */
export function customTable(
  columns: readonly Column[],
  objects: readonly unknown[],
  withTitles: boolean,
): string[] {
  const rows = objects.map((object) =>
    columns.map(
      ({ path }) =>
        findInPath(path, { root: object, current: object }).map(shownValue).join(",") || "<none>",
    ),
  );
  const all = withTitles ? [columns.map(({ title }) => title), ...rows] : rows;
  const widths = columns.map((_column, index) =>
    Math.max(minWidth, ...all.map((row) => (row[index]?.length ?? 0) + padding)),
  );
  return all.map((row) =>
    row
      .map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index] ?? 0)))
      .join(""),
  );
}
