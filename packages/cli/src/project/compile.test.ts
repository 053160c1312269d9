/** Which code has to be compiled before Node.js runs it, and what is made of it. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { stop } from "esbuild";
import { afterAll, expect, test } from "vitest";
import { compilerProblems } from "../deploy/check-syntax.ts";
import { compile, moduleNameOf, needsCompiling } from "./compile.ts";
import { listSource } from "./files.ts";
import { openProject } from "./project.ts";

const home = mkdtempSync(path.join(tmpdir(), "compile-"));
afterAll(async () => {
  rmSync(home, { recursive: true, force: true });
  await stop();
});

let count = 0;
function projectOf(files: Record<string, string>) {
  const root = path.join(home, String(count++));
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
  }
  return openProject(root);
}
const needs = (files: Record<string, string>): boolean => {
  const project = projectOf(files);
  return needsCompiling(project, listSource(project.root).files);
};

const plain = `import { type X, y } from "./lib/y.ts";\nexport const main = (event: { a: number }): X => y(event as X);\n`;
const exported = "export const main = () => 1;\n";

test.each<[string, Record<string, string>]>([
  ["JavaScript", { "handler.js": "enum X {" }],
  ["types that can be taken out", { "handler.ts": plain, "lib/y.ts": "export type X = number;" }],
  ["a package by its scope", { "handler.ts": `import x from "@scope/x";\n${exported}` }],
  ["an address of mail", { "handler.ts": `export const main = () => "ann@example.org";` }],
  ["settings without paths", { "handler.ts": exported, "tsconfig.json": `{"compilerOptions":{}}` }],
  ["declarations", { "handler.ts": exported, "types.d.ts": "declare enum X { A }" }],
  [
    "a directory that compiles itself",
    { "handler.tsx": "", "package.json": `{"scripts":{"build":"tsc"}}` },
  ],
  [
    "commonjs that requires a file without its extension",
    { "handler.js": `exports.main = require("./lib");`, "lib.js": "", "other.ts": "enum X { A }" },
  ],
  [
    "JSON that is required, or has an attribute",
    {
      "handler.mjs": `import a from "./a.json" with { type: "json" };\nexport { b } from "./b.cjs";`,
      "b.cjs": `exports.b = require("./a.json");`,
      "a.json": "{}",
    },
  ],
  [
    "an import in a comment",
    { "handler.js": `// import a from "./a.json"\n${exported}`, "a.json": "{}" },
  ],
  ["Python", { "handler.py": "def main(event, context): return 1", "page.tsx": "" }],
])("%s: Node.js runs it as it is", (_, files) => {
  expect(needs(files)).toBe(false);
});

test.each<[string, Record<string, string>]>([
  ["an enum", { "handler.ts": `enum Color { Red }\n${exported}` }],
  [
    "a const enum of another file",
    { "handler.ts": plain, "lib/y.ts": "export const enum X { A }" },
  ],
  ["a namespace", { "handler.ts": `namespace A.B { export const c = 1 }\n${exported}` }],
  ["a decorator", { "handler.ts": `@known class A {}\n${exported}` }],
  ["a decorator of a method", { "handler.ts": `class A { @get("/") a() {} }\n${exported}` }],
  ["a parameter property", { "handler.ts": `class A { constructor(private a: 1) {} }` }],
  ["an import of old", { "handler.ts": `import fs = require("node:fs");\n${exported}` }],
  ["a file without its extension", { "handler.ts": `import { y } from "./lib/y";\n${exported}` }],
  ["a folder", { "handler.ts": `export * from "..";` }],
  ["path aliases", { "handler.ts": exported, "tsconfig.json": `{ "paths": {} }` }],
  ["JSX", { "handler.tsx": exported }],
  [
    "a module where package.json says commonjs",
    { "handler.ts": exported, "package.json": `{ "type": "commonjs" }` },
  ],
  [
    "a module of JavaScript where package.json says commonjs",
    { "handler.js": exported, "package.json": `{ "type": "commonjs" }` },
  ],
  [
    "TypeScript that is required without its extension",
    { "handler.ts": `exports.main = require("./lib");`, "lib.ts": "" },
  ],
  [
    "a folder of TypeScript",
    { "handler.js": `exports.main = require("./lib");`, "lib/index.ts": "" },
  ],
  [
    "an enum that JavaScript imports",
    { "handler.js": `import { A } from "./a.js";\n${exported}`, "a.ts": "export enum A { B }" },
  ],
  [
    "JSON without an attribute",
    { "handler.js": `import a from "./a.json";\n${exported}`, "a.json": "{}" },
  ],
  ["JSX without types", { "handler.jsx": exported }],
  ["JSX of another file", { "handler.ts": exported, "page.tsx": "" }],
])("%s has to be compiled", (_, files) => {
  expect(needs(files)).toBe(true);
});

test("all of it becomes one file, which packages are not in", async () => {
  const project = projectOf({
    "package.json": `{ "type": "module", "main": "src/index.tsx" }`,
    "tsconfig.json": `{ /* a comment */ "compilerOptions": { "paths": { "@lib/*": ["./lib/*"] }, "experimentalDecorators": true, "jsx": "react", "jsxFactory": "h", }, }`,
    "src/index.tsx": `import { word } from "@lib/word";
import { basename } from "node:path";
import { Page } from "./page";
enum Color { Red = 1 }
function known(target: new (...args: never[]) => object) { (target as any).known = true; }
@known class Shown { constructor(readonly color: Color) {} }
export const main = (): unknown[] => [word, new Shown(Color.Red).color, (Shown as any).known, Shown.name, Page(), basename(import.meta.filename)];
`,
    "src/page.tsx": `const h = (tag: string, _: unknown, ...children: string[]) => [tag, ...children];\nexport const Page = () => <p>text</p>;\n`,
    "lib/word.ts": `export const word: string = "of the library";\n`,
  });
  const code = await compile(project);
  expect(code).toMatchObject({ path: "src/index.js", format: "module" });
  expect(code.inputs.toSorted()).toEqual(["lib/word.ts", "src/index.tsx", "src/page.tsx"]);
  expect(moduleNameOf(code)).toBe("src/index");
  const file = path.join(project.root, code.path);
  writeFileSync(file, code.text);
  const { main } = (await import(pathToFileURL(file).href)) as {
    main: () => unknown[];
  };
  expect(main()).toEqual(["of the library", 1, true, "Shown", ["p", "text"], "index.js"]);
});

test("a handler that is not a module stays none", async () => {
  const project = projectOf({
    "handler.ts": `enum Color { Red = 1 }\nmodule.exports = { main: () => Color.Red };\n`,
  });
  const code = await compile(project);
  expect(code).toMatchObject({ path: "handler.js", format: "commonjs" });
  expect(moduleNameOf(code)).toBeUndefined();
  const file = path.join(project.root, "compiled.cjs");
  writeFileSync(file, code.text);
  expect(createRequire(file)(file).main()).toBe(1);
});

test("a mistake has its place", async () => {
  const files = { "handler.tsx": "enum Color { Red }\nexport const main = () => <p>{</p>;\n" };
  const project = projectOf(files);
  const problems = compilerProblems(await compile(project).catch((error: unknown) => error));
  expect(problems[0]).toMatchObject({ file: "handler.tsx", line: 2, text: expect.any(String) });
});
