/** TypeScript with more than types in it, in sources that no other program has compiled before. */
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { buildFunctionImage, pullImage } from "../index.ts";
import { type Files, given } from "../testing/build.ts";
import { temporaryDirectory } from "../testing/registry.ts";

/** The Function's directory of an image that is built from these files, and what the build has said. */
async function built(files: Files, options = {}) {
  const { build, client, lines } = await given(files, options);
  const { image } = await buildFunctionImage(build);
  const dir = join(temporaryDirectory(), "image");
  await pullImage(client, image, dir);
  return { root: join(dir, "usr/src/app/function"), image, lines };
}

/** What Node.js prints for a piece of JavaScript in a directory. */
function run(root: string, script: string): string {
  const args = ["--no-warnings", "--input-type=module", "-e", script];
  return execFileSync(process.execPath, args, { cwd: root, encoding: "utf8" }).trim();
}

const printMain = (file: string) =>
  `const { default: own, main = own.main } = await import("./${file}"); console.log(main())`;

test.each<[string, string, Files]>([
  [
    "an enum",
    "2",
    {
      "handler.ts": `enum Color { Red, Green = 2 }\nexport const main = (): Color => Color.Green;`,
    },
  ],
  [
    "an enum in an inline source",
    "1",
    { "handler.js": `enum Color { Red, Green }\nexport const main = (): Color => Color.Green;` },
  ],
  [
    "an enum in CommonJS",
    "1",
    { "handler.ts": `enum Color { Red, Green }\nmodule.exports = { main: () => Color.Green };` },
  ],
  [
    "a namespace",
    "3",
    { "handler.ts": `namespace A.B { export const c = 3 }\nexport const main = () => A.B.c;` },
  ],
  [
    "a parameter property",
    "4",
    {
      "handler.ts": `class A { constructor(private readonly a: number) {} get() { return this.a } }\nexport const main = () => new A(4).get();`,
    },
  ],
  [
    "another file's const enum",
    "5",
    {
      "handler.ts": `import { E } from "./lib/e.ts";\nexport const main = () => E.Five;`,
      "lib/e.ts": "export const enum E { Five = 5 }",
    },
  ],
  [
    "imports that are types",
    "six",
    {
      "handler.ts": `import { Context, Event } from "no-such-types";\nimport Kind, { type X, Y, six } from "./words.ts";\nenum E { A }\nexport const main = (e: Event, c: Context<Kind>): Y | string => E.A + six.slice(0) && six;`,
      "words.ts": `export type X = 1; export interface Y {}; export default interface Kind {}; export const six: string = "six";`,
    },
  ],
  [
    "imports in a text, which are not the file's",
    `0\nimport fs from "node:fs";\n.`,
    {
      "handler.ts": `enum E { A }\nconst made = \`\nimport fs from "node:fs";\n.\`;\nexport const main = () => E.A + made;`,
    },
  ],
  [
    "imports after comments, directives and other imports",
    "posix",
    {
      "handler.ts": `"use strict"; // import "a"\n/* import\n */ import "node:fs";\nimport * as p from "node:path"; import type { Z } from "gone";\nconst q = p;\nimport { Gone, /* a } */ type Far } from "no-such-types";\nenum E { A }\nexport const main = (g?: Gone): string => p.posix === q.posix ? "posix" : E[0];`,
    },
  ],
])("%s", async (_, expected, files) => {
  const { root } = await built(files);
  expect(run(root, printMain(Object.keys(files)[0] ?? ""))).toBe(expected);
});

test("the same source gives the same image; what Node.js runs as it is stays as it is", async () => {
  const plain = `// An enum X { is not here.\nexport const one: number = 1;\n`;
  const broken = "enum Broken { A = {{value}} }\n";
  const files = {
    "handler.ts": `enum E { A }\nexport const main = () => E.A;\n`,
    "plain.ts": plain,
    "other.js": `const text = "enum X { a }";\n`,
    "test/broken.ts": broken,
    "template.ts": broken,
    "types.d.ts": "declare enum X { A }\n",
  };
  const { build, client, lines } = await given(files);
  const { image } = await buildFunctionImage(build);
  expect(lines).toContainEqual(
    expect.stringMatching(/^template\.ts:1:\d+: .*; the file is left as it is$/),
  );
  const again = await given({}, { source: build.source });
  expect((await buildFunctionImage(again.build)).image.split("@")[1]).toBe(image.split("@")[1]);
  const dir = join(temporaryDirectory(), "image");
  await pullImage(client, image, dir);
  for (const [name, text] of Object.entries(files).slice(1))
    expect(readFileSync(join(dir, "usr/src/app/function", name), "utf8"), name).toBe(text);
});

test("text that looks like imports without an end takes no longer than other text", async () => {
  const text = "import {\\n".repeat(60_000);
  const begin = performance.now();
  await built({
    "handler.ts": `enum E { A }\nexport const main = () => "${text}".length + E.A;\n`,
  });
  await built({
    "handler.ts": `enum E { A }\nexport const main = () => \`${"import {\n".repeat(100_000)}\`.length + E.A;`,
  });
  const names = Array.from({ length: 20_000 }, (_, index) => `n${index}`).join(", ");
  await built({
    "handler.ts": `import { ${names} } from "./types.ts";\nenum E { A }\nexport const main = () => E.A;`,
  });
  expect(performance.now() - begin).toBeLessThan(10_000);
});

test("its source map has the author's text", async () => {
  const text = `interface Shape { a: string }\nenum E { A }\nexport const main = (): void => {\n  throw new Error("failed " + E.A);\n};\n`;
  const { root } = await built({ "handler.ts": text });
  const copy = join(temporaryDirectory(), "handler.mjs");
  cpSync(join(root, "handler.ts"), copy);
  const script = `
const { main } = await import(${JSON.stringify(copy)});
const { findSourceMap } = await import("node:module");
const { payload } = findSourceMap(${JSON.stringify(copy)});
try { main() } catch (error) { console.log(error.stack.includes("handler.ts:4:9"), payload.sourcesContent[0]) }`;
  expect(run(root, `process.setSourceMapsEnabled(true);${script}`)).toBe(`true ${text}`.trim());
});

test.each<[string, string, RegExp]>([
  ["handler.ts", "enum E { A }\n\n\tconst x = ;\n", /^handler\.ts:3:12: Expression expected$/],
  ["handler.js", "enum E { A }\nconst x = ;\n", /^handler\.js:2:11: Expression expected$/],
  ["handler.mts", "enum E { A\nexport const main = (", /^handler\.mts:2/],
])("a mistake in %s ends the build with its place", async (file, text, expected) => {
  await expect(built({ [file]: text })).rejects.toThrow(expected);
});

test("a directory that has been compiled, or compiles itself, is left alone", async () => {
  const files = { "handler.ts": "enum E { A }\n", "handler.js": "exports.main = () => 1;\n" };
  const compiled = await built(files, { isCompiled: true });
  expect(readFileSync(join(compiled.root, "handler.ts"), "utf8")).toBe(files["handler.ts"]);
  const manifest = `{"scripts":{"build":"true"}}`;
  const { root } = await built({ ...files, "package.json": manifest });
  expect(readFileSync(join(root, "handler.ts"), "utf8")).toBe(files["handler.ts"]);
});
