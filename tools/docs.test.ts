/**
 * The documents hold together: what they link to exists, down to the anchor, and so does every document that code
 * cites as `docs/….md#anchor`.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "..");
const read = (file: string) => readFileSync(path.join(root, file), "utf8");
const exclude = (name: string) => /(^|\/)(node_modules|generated|\.cache)$/.test(name);

const documents = globSync(
  ["*.md", "{docs,examples,runtimes,packages,tools,test,deploy,bench}/**/*.md"],
  {
    cwd: root,
    exclude,
  },
).sort();
const code = globSync(
  "{packages,runtimes,test,tools,bench,deploy,examples}/**/*.{ts,mjs,cjs,js,py,yaml,json,sh,go}",
  {
    cwd: root,
    exclude,
  },
);

/** Code blocks and inline code show syntax: what looks like a link there is none. */
const prose = (text: string) =>
  text.replaceAll(/^```[^]*?^```$/gm, "").replaceAll(/`[^`\n]*`/g, "``");

/** As GitHub makes an anchor from a heading. */
const slugOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");

const anchors = new Map<string, Set<string>>();

function anchorsOf(document: string): Set<string> {
  const known = anchors.get(document);
  if (known) return known;
  const text = read(document).replaceAll(/^```[^]*?^```$/gm, "");
  const headings = [...text.matchAll(/^#+ +(.+)$/gm)].map(([, heading = ""]) => slugOf(heading));
  const named = [...text.matchAll(/<a id="([^"]+)"><\/a>/g)].map(([, id = ""]) => id);
  const found = new Set([...headings, ...named]);
  anchors.set(document, found);
  return found;
}

/** What is wrong with a reference, if anything. */
function problemOf(target: string, anchor: string | undefined): string | undefined {
  if (!existsSync(path.join(root, target))) return `${target} does not exist`;
  if (anchor === undefined || !target.endsWith(".md")) return undefined;
  return anchorsOf(target).has(anchor) ? undefined : `${target} has no anchor #${anchor}`;
}

const broken = (file: string, references: [target: string, anchor: string | undefined][]) =>
  references.flatMap(([target, anchor]) => {
    const problem = problemOf(target, anchor);
    return problem === undefined ? [] : [`${file}: ${problem}`];
  });

test("every relative link of a document leads to a file, and its anchor is there", () => {
  const wrong = documents.flatMap((file) => {
    const links = [...prose(read(file)).matchAll(/\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$/gm)].map(
      ([, inline, defined]) => inline ?? defined ?? "",
    );
    const relative = links.filter((link) => !/^[a-z+]+:/.test(link));
    return broken(
      file,
      relative.map((link) => {
        const [to = "", anchor] = link.split("#");
        return [to === "" ? file : path.join(path.dirname(file), to), anchor];
      }),
    );
  });
  expect(wrong).toEqual([]);
});

test("every document that code cites exists, and so does the anchor", () => {
  const wrong = code.flatMap((file) => {
    const citations = [...read(file).matchAll(/\b(docs\/[\w./-]+\.md)(?:#([\w-]+))?/g)];
    return broken(
      file,
      citations.map(([, target = "", anchor]) => [target, anchor]),
    );
  });
  expect(wrong).toEqual([]);
});

test("every decision that code or a document cites exists", () => {
  const decisions = new Set(
    globSync("docs/adr/*.md", { cwd: root }).map((file) => path.basename(file).slice(0, 4)),
  );
  const wrong = [...code, ...documents].flatMap((file) =>
    [...read(file).matchAll(/(?:\badr\/|\bADR )(\d{4})\b/g)]
      .filter(([, number = ""]) => !decisions.has(number))
      .map(([citation]) => `${file}: ${citation}`),
  );
  expect(wrong).toEqual([]);
});

test("the contract is cited by its anchors, never by a section's number", () => {
  const numbered = [...code, ...documents].filter((file) =>
    /\bcontract,[\s*]+section/.test(read(file)),
  );
  expect(numbered).toEqual([]);
});

test("an anchor stands once in its document", () => {
  const repeated = documents.flatMap((file) => {
    const ids = [...read(file).matchAll(/<a id="([^"]+)"><\/a>/g)].map(([, id = ""]) => id);
    return ids.filter((id, index) => ids.indexOf(id) !== index).map((id) => `${file}#${id}`);
  });
  expect(repeated).toEqual([]);
});

test("SCOPE.md lists exactly the kinds that the embedded API server serves", () => {
  const section = read("docs/SCOPE.md").split("\n## Kinds\n")[1]?.split("\n## ")[0] ?? "";
  const rows = [...section.matchAll(/^\| (.*?) ?\| (.*?) \|/gm)].slice(1);
  let versions: string[] = [];
  const listed = rows.flatMap(([, group = "", kinds = ""]) => {
    if (group) versions = [...group.matchAll(/`([^`]+)`/g)].map(([, each = ""]) => each);
    return versions.flatMap((version) => kinds.split(", ").map((kind) => `${version} ${kind}`));
  });
  interface Served {
    group: string;
    version: string;
    resources: { kind: string }[];
  }
  const { groupVersions, reviews } = JSON.parse(
    read("packages/apiserver/src/generated/kube-schema.json"),
  ) as Record<"groupVersions" | "reviews", Served[]>;
  const served = [...groupVersions, ...reviews].flatMap(({ group, version, resources }) =>
    resources.map(({ kind }) => `${group ? `${group}/` : ""}${version} ${kind}`),
  );
  // Answered by the node agent, and not of the generated kinds.
  const metrics = ["metrics.k8s.io/v1beta1 NodeMetrics", "metrics.k8s.io/v1beta1 PodMetrics"];
  expect(listed.sort()).toEqual([...served, ...metrics].sort());
});

test("no line of a document has more than 160 characters", () => {
  const long = documents.flatMap((file) =>
    read(file)
      .split("\n")
      .flatMap((line, index) => (line.length > 160 ? [`${file}:${index + 1}`] : [])),
  );
  expect(long).toEqual([]);
});
