import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { importsFromOutside } from "./local-imports.ts";

/** A directory next to `shared`, with these files. */
async function outside(files: Record<string, string>): Promise<string[]> {
  const home = mkdtempSync(path.join(tmpdir(), "spry-imports-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  mkdirSync(path.join(home, "shared"));
  for (const name of ["x.js", "x.ts"]) writeFileSync(path.join(home, "shared", name), "");
  const root = path.join(home, "fn");
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    writeFileSync(path.join(root, name), text);
  }
  const [handler = ""] = Object.keys(files);
  const found = await importsFromOutside(root, handler);
  return found.map(({ from, line, specifier }) => `${from}:${line} ${specifier}`);
}

test.each<[what: string, files: Record<string, string>, found: string[]]>([
  ["import", { "handler.js": 'import "../shared/x.js";\n' }, ["handler.js:1 ../shared/x.js"]],
  [
    "require",
    { "handler.js": 'const a = 1;\nrequire("../shared/x");\n' },
    ["handler.js:2 ../shared/x"],
  ],
  [
    "import() in a file that the handler imports",
    {
      "handler.ts": 'import type { A } from "./a.ts";\nimport "./lib/b.ts";\n',
      "a.ts": "export type A = 1;\n",
      "lib/b.ts": 'export const b = () => import("../../shared/x.ts");\n',
    },
    ["lib/b.ts:1 ../../shared/x.ts"],
  ],
  [
    "export from",
    { "handler.mjs": 'export * from "../shared/x.js";\n' },
    ["handler.mjs:1 ../shared/x.js"],
  ],
])("%s of a file outside is found", async (_, files, found) => {
  expect(await outside(files)).toEqual(found);
});

test.each<[what: string, text: string]>([
  ["a block comment", '/* once\nimport x from "../shared/x.js";\n*/\n'],
  ["a comment at the end of a line", 'const a = 1; // import "../shared/x.js"\n'],
  ["a template", 'const code = `\nimport x from "../shared/x.js";\n`;\n'],
  ["a string", "const hint = 'write import \"../shared/x.js\"';\n"],
  [
    "a regular expression",
    'const found = /import "..\\/shared/.test("from \\"../shared/x.js\\"");\n',
  ],
])("what %s says is not an import", async (_, text) => {
  expect(await outside({ "handler.js": `${text}exports.main = () => 1;\n` })).toEqual([]);
});

test("an import of types alone is none", async () => {
  const text = 'import type { A } from "../shared/x.ts";\nexport const main = (): A => 1;\n';
  expect(await outside({ "handler.ts": text })).toEqual([]);
});
