import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, expect, test } from "vitest";
import { openProject } from "./project.ts";

let root = "";
afterEach(() => rmSync(root, { recursive: true, force: true }));

function projectOf(files: Record<string, string>): { runtime: string; remarks: readonly string[] } {
  root = mkdtempSync(path.join(tmpdir(), "spry-project-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(root, name), text);
  const { runtime, remarks } = openProject(root);
  return { runtime: runtime.name, remarks };
}

const node = (range: string) => ({
  "handler.js": "",
  "package.json": JSON.stringify({ engines: { node: range } }),
});
const python = (name: string, text: string) => ({ "handler.py": "", [name]: text });
const requires = (specifiers: string) =>
  python("pyproject.toml", `[project]\nname = "x"\nrequires-python = "${specifiers}"\n`);

test.each([
  ["22.x", "nodejs22"],
  ["^22.11.0", "nodejs22"],
  [">=18 <23", "nodejs22"],
  ["20", "nodejs20"],
  [">=26", "nodejs26"],
  [">=20", "nodejs24"],
  ["*", "nodejs24"],
  ["lts", "nodejs24"],
])("engines.node %s is %s", (range, runtime) => {
  expect(projectOf(node(range))).toEqual({ runtime, remarks: [] });
});

test.each([
  ["3.14", "python314"],
  ["3.14.2\n", "python314"],
  ["3.12.4", "python312"],
  ["pypy3.10", "python312"],
])(".python-version %j is %s", (text, runtime) => {
  expect(projectOf(python(".python-version", text))).toEqual({ runtime, remarks: [] });
});

test.each([
  [">=3.13", "python314"],
  [">3.12,!=3.12.*", "python314"],
  ["==3.14.*", "python314"],
  ["~=3.14.1", "python314"],
  [">=3.9", "python312"],
  ["~=3.10", "python312"],
  ["<3.12.9,>=3.12", "python312"],
])("requires-python %s is %s", (specifiers, runtime) => {
  expect(projectOf(requires(specifiers))).toEqual({ runtime, remarks: [] });
});

test("a version that no runtime has is said, and the usual runtime is used", () => {
  expect(projectOf(node("<=18")).remarks).toEqual([
    "package.json asks for Node.js <=18, which no runtime has: nodejs24 was chosen",
  ]);
  rmSync(root, { recursive: true });
  expect(projectOf(python(".python-version", "3.9.1"))).toEqual({
    runtime: "python312",
    remarks: [".python-version asks for Python 3.9, which no runtime has: python312 was chosen"],
  });
});

test("spry.yaml has the last word", () => {
  const files = { ...node("22.x"), "spry.yaml": "runtime: nodejs26\n" };
  expect(projectOf(files)).toEqual({ runtime: "nodejs26", remarks: [] });
});
