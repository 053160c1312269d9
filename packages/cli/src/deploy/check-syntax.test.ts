import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openProject } from "../project/project.ts";
import { formatProblem, syntaxProblems } from "./check-syntax.ts";

async function placesOfMistakes(files: Record<string, string>): Promise<string[]> {
  const root = mkdtempSync(path.join(tmpdir(), "syntax-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    writeFileSync(path.join(root, name), text);
  }
  const problems = await syntaxProblems(openProject(root), []);
  return problems.map(({ file, line, column, message }) => `${file}:${line}:${column} ${message}`);
}

test.each<[what: string, files: Record<string, string>, mistakes: string[]]>([
  [
    "TypeScript that is called handler.js",
    {
      "handler.js":
        "export default {\n  async fetch(request: Request) {\n    return 1;\n  },\n};\n",
    },
    [],
  ],
  [
    "TypeScript that is called handler.js, at its own mistake",
    {
      "handler.js":
        "export default {\n  async fetch(request: Request) {\n    const x = ;\n  },\n};\n",
    },
    ['handler.js:3:15 Unexpected ";"'],
  ],
  [
    "JavaScript",
    { "handler.js": "export default {\n  async fetch(request) {\n    const x = ;\n  },\n};\n" },
    ['handler.js:3:15 Unexpected ";"'],
  ],
  [
    "another file, which cannot be TypeScript",
    {
      "handler.js": 'export { a as main } from "./a.js";',
      "a.js": "export const a: string = 1;\n",
    },
    ['a.js:1:15 Expected ";" but found ":"'],
  ],
  [
    "TypeScript by the names of JavaScript",
    {
      "handler.ts":
        'import { a } from "./a.js"; import { b } from "#b"; export const main = (): string => a + b;',
      "a.ts": "export const a: string = 1;\n",
      "lib/b.mts": "export const b: string = 1;\n",
      "package.json": '{"imports":{"#b":"./lib/b.mjs"}}',
    },
    [],
  ],
])("the mistakes of %s are found", async (_, files, mistakes) => {
  expect(await placesOfMistakes(files)).toEqual(mistakes);
});

test("a line of code ends where the terminal does, so that the mark is below its place", () => {
  const text = `    retrun Response.json({ message: "${"x".repeat(80)}" });`;
  const problem = { file: "handler.ts", line: 5, column: 12, message: "Expected ;", text };
  expect(formatProblem(problem, 40)).toBe(
    `handler.ts:5:12: Expected ;\n  ${text.slice(0, 37)}…\n             ^`,
  );
  expect(formatProblem(problem)).toContain(text);
  // The mark alone would say nothing.
  expect(formatProblem({ ...problem, column: 60 }, 40)).toBe("handler.ts:5:60: Expected ;");
});
