/** How a Function's code is found and loaded, and what is said when it cannot be. */
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import {
  failToStart,
  send,
  startFunction,
  startWarmProcess,
  waitToStart,
} from "./testing/running-function.ts";

const hello = 'exports.main = () => "hello";';

describe("a Function is loaded", () => {
  const forms: { name: string; files: Record<string, string>; env?: Record<string, string> }[] = [
    {
      name: "CommonJS",
      files: { "handler.js": 'module.exports = { main() { return "hello"; } };' },
    },
    {
      name: "an ES module by package.json",
      files: {
        "handler.js": 'export const main = async () => "hello";',
        "package.json": '{"type":"module"}',
      },
    },
    {
      name: "an ES module by its name",
      files: { "handler.mjs": 'export function main() { return "hello"; }' },
    },
    {
      name: "an ES module by its syntax",
      files: { "handler.js": 'export function main() { return "hello"; }' },
    },
    {
      name: "an ES module that waits",
      files: {
        "handler.mjs":
          'const text = await Promise.resolve("hello"); export const main = () => text;',
      },
    },
    {
      name: "a default export",
      files: { "handler.mjs": 'export default { main: () => "hello" };' },
    },
    {
      name: "CommonJS by its name",
      files: { "handler.cjs": hello, "package.json": '{"type":"module"}' },
    },
    {
      name: "TypeScript",
      files: { "handler.ts": 'export const main = (event: { data?: string }): string => "hello";' },
    },
    {
      name: "TypeScript of an ES module package",
      files: {
        "handler.ts": 'import { text } from "./text.ts"; export const main = () => text;',
        "text.ts": 'export const text: string = "hello";',
        "package.json": '{"type":"module"}',
      },
    },
    ...["handler.ts", "handler.mts", "handler.js"].map((file) => ({
      name: `TypeScript that imports types without saying so, in ${file}`,
      files: {
        [file]: `import { Context, Event } from "no-such-types";
import { hello } from "./words.mjs";
export const main = (event: Event, context: Context): string => hello;`,
        "words.mjs": `export const hello = "hello";`,
      },
    })),
    {
      name: "TypeScript that is called JavaScript",
      files: {
        "handler.js": 'module.exports = { main: (event: { data?: string }): string => "hello" };',
      },
    },
    {
      name: "an ES module in TypeScript that is called JavaScript",
      files: {
        "handler.js":
          'interface A { a: string }\nexport function main(event: A, ...rest: unknown[]): string { return "hello"; }',
      },
    },
    {
      name: "TypeScript that is called JavaScript in a module package",
      files: {
        "handler.js": 'export const main = (event: unknown): string => "hello";',
        "package.json": '{"type":"module"}',
      },
    },
    {
      name: "package.json's main",
      files: { "src/app.js": hello, "package.json": '{"main":"src/app.js"}' },
    },
    { name: "index.js, when there is nothing else", files: { "index.js": hello } },
    {
      name: "build/index.js, where the build of func's TypeScript puts it",
      files: { "build/index.js": hello },
    },
    {
      name: "index.mjs, when package.json's main is not there",
      files: {
        "index.mjs": `export const main = () => "hello";`,
        "package.json": '{"main":"src/app.js"}',
      },
    },
    {
      name: "handler.js before package.json's main",
      files: { "handler.js": hello, "index.js": "throw 1", "package.json": '{"main":"index.js"}' },
    },
    {
      name: "other names by MOD_NAME and FUNC_HANDLER",
      files: { "app.js": 'exports.run = () => "hello";' },
      env: { MOD_NAME: "app", FUNC_HANDLER: "run" },
    },
    {
      name: "with dependencies",
      files: {
        "handler.js": 'exports.main = () => require("greeting");',
        "node_modules/greeting/index.js": 'module.exports = "hello";',
      },
    },
  ];
  /** By the names that a compiler would give them: `"module": "nodenext"` asks for it. */
  const named: { name: string; files: Record<string, string> }[] = [
    {
      name: "./text.js for text.ts, in an ES module package",
      files: {
        "handler.ts": 'import { text } from "./text.js"; export const main = (): string => text;',
        "text.ts": 'export const text: string = "hello";',
        "package.json": '{"type":"module"}',
      },
    },
    {
      name: "./text.js for text.ts, without a package.json",
      files: {
        "handler.ts": 'import { text } from "./text.js"; export const main = (): string => text;',
        "text.ts": 'export const text: string = "hello";',
      },
    },
    {
      name: "./text.js for text.ts, required",
      files: {
        "handler.cts":
          'const { text } = require("./text.js"); exports.main = (event: unknown) => text;',
        "text.ts": 'const text: string = "hello"; module.exports = { text };',
      },
    },
    {
      name: "./text.mjs for text.mts and ./word.cjs for word.cts",
      files: {
        "handler.mts": 'import { text } from "./text.mjs"; export const main = (): string => text;',
        "text.mts": 'import word from "./word.cjs"; export const text: string = word;',
        "word.cts": 'const word: string = "hello"; module.exports = word;',
      },
    },
    {
      name: "while it runs",
      files: {
        "handler.ts":
          'export const main = async (): Promise<string> => (await import("./lib/text.js")).text;',
        "lib/text.ts": 'export { text } from "../words/index.js";',
        "words/index.ts": 'export const text: string = "hello";',
      },
    },
    {
      name: "folders, and files without extension",
      files: {
        "handler.ts":
          'import { a } from "./lib"; import { b } from "./b"; import { c } from "./lib/"; export const main = (): string => a + b + c;',
        "lib/index.ts": 'export const a: string = "h"; export const c: string = "llo";',
        "b.ts": 'export const b: string = "e";',
      },
    },
    {
      name: "folders, and files without extension, required",
      files: {
        "handler.cts":
          'const text: string = require("./lib").a + require("./b") + require("./c"); exports.main = () => text;',
        "lib/index.ts": 'const a: string = "h"; module.exports = { a };',
        "b.ts": 'const b: string = "e"; module.exports = b;',
        "c.js": 'module.exports = "llo";',
      },
    },
    {
      name: "what imports of package.json leads to",
      files: {
        "handler.ts":
          'import { a } from "#text"; import { b } from "#lib/b.js"; import { c } from "me/c"; export const main = (): string => a + b + c;',
        "src/text.ts": 'export const a: string = "h";',
        "lib/b.ts": 'export const b: string = "ell";',
        "c.ts": 'export const c: string = "o";',
        "package.json":
          '{"name":"me","imports":{"#text":"./src/text.js","#lib/*":"./lib/*"},"exports":{"./c":"./c.js"}}',
      },
    },
    {
      name: "what imports of package.json leads to, required",
      files: {
        "handler.cts": 'const { a } = require("#text"); exports.main = (event: unknown) => a;',
        "src/text.ts": 'const a: string = "hello"; module.exports = { a };',
        "package.json": '{"imports":{"#text":"./src/text.js"}}',
      },
    },
    {
      name: "the JavaScript of that name, where there is one",
      files: {
        "handler.ts": 'import { text } from "./text.js"; export const main = (): string => text;',
        "text.ts": 'export const text: string = "TypeScript";',
        "text.js": 'exports.text = "hello";',
      },
    },
    {
      name: "a file whose name has dots and signs",
      files: {
        "handler.ts":
          'import { text } from "./a%20b%23c/text.data.js?x=1"; export const main = (): string => text;',
        "a b#c/text.data.ts": 'export const text: string = "hello";',
      },
    },
    {
      name: "TypeScript from TypeScript that is called JavaScript",
      files: {
        "handler.js": 'import { text } from "./text.js"; export const main = (): string => text;',
        "text.ts": 'export const text: string = "hello";',
      },
    },
    {
      name: "TypeScript from JavaScript",
      files: {
        "handler.js": 'import { text } from "./text.js"; export const main = () => text;',
        "text.ts": 'export const text: string = "hello";',
      },
    },
    {
      name: "TypeScript required by JavaScript",
      files: {
        "handler.js": 'const { text } = require("./text.js"); exports.main = () => text;',
        "text.ts": 'const text: string = "hello"; module.exports = { text };',
      },
    },
  ];
  test.each(named)("with TypeScript imported as $name", async ({ files }) => {
    const { url } = await startFunction(files);
    expect((await send(url)).body).toBe("hello");
  });

  test.each(forms)("from $name", async ({ files, env = {} }) => {
    const { url, stderr } = await startFunction(files, env);
    expect((await send(url)).body).toBe("hello");
    expect(stderr()).not.toMatch(/ExperimentalWarning(?!: Type Stripping)/);
  });

  const mistakes: { name: string; files: Record<string, string>; says: RegExp }[] = [
    {
      name: "a syntax error",
      files: { "handler.js": "module.exports = {\n  main( {\n" },
      says: /^loading handler\.js: SyntaxError: .*\n[^]*handler\.js:\d/,
    },
    {
      name: "a syntax error in an ES module",
      files: { "handler.mjs": "export const main = ;" },
      says: /^loading handler\.mjs: SyntaxError: Unexpected token ';'\n[^]*handler\.mjs:1/,
    },
    {
      name: "a module that is not there",
      files: { "handler.js": 'require("left-out");' },
      says: /^loading handler\.js: Cannot find module 'left-out'\n[^]*at .*handler\.js:1/,
    },
    {
      name: "an error while loading",
      files: { "handler.js": '\nthrow new TypeError("no configuration");' },
      says: /^loading handler\.js: TypeError: no configuration\n[^]*handler\.js:2/,
    },
    {
      name: "an error of Node.js' with properties",
      files: { "handler.js": "exports.main = () => 1;\nnew URL(process.env.NONE);" },
      says: /^loading handler\.js: TypeError: Invalid URL\n[^]*handler\.js:2\nnew URL\(process.env.NONE\);\n\^/,
    },
    {
      name: "TypeScript that must be compiled",
      files: { "handler.js": "const a: number = 1;\nenum E { b }\nexport const main = () => E.b;" },
      says: /^loading handler\.js: SyntaxError: TypeScript enum is not supported [^\n]*\n[^\n]*handler\.js:2\n(?:.*\n)*enum E \{ b \}\n\^+/,
    },
    {
      name: "TypeScript that is called JavaScript, with a mistake after its types",
      files: {
        "handler.js":
          "export default {\n  async fetch(request: Request) {\n    const x = ;\n  },\n};\n",
      },
      says: /^loading handler\.js: SyntaxError: Expression expected\n[^\n]*handler\.js:3\n(?:.*\n)*? {4}const x = ;\n {14}\^/,
    },
    {
      name: "the same in CommonJS, on one line and with a tab",
      files: { "handler.js": "module.exports = {\n\tmain: (event: Event) => ,\n};\n" },
      says: /^loading handler\.js: SyntaxError: Expression expected\n[^\n]*handler\.js:2\n/,
    },
    {
      name: "the same after imports and interfaces",
      files: {
        "handler.js":
          'import { createHash } from "node:crypto";\ninterface A { a: string }\nexport const main = async (a: A) => {\n  if (a {\n};\n',
      },
      says: /^loading handler\.js: SyntaxError: [^\n]*\n[^\n]*handler\.js:4\n/,
    },
    {
      name: "JavaScript with a mistake, in the words of its own parser",
      files: { "handler.js": "export default {\n  fetch() {\n    const x = ;\n  },\n};\n" },
      says: /^loading handler\.js: SyntaxError: Unexpected token ';'\n[^]*handler\.js:3/,
    },
    {
      name: "TypeScript with a mistake in another file",
      files: {
        "handler.ts": 'import "./util.js";\nexport const main = () => 1;',
        "util.ts": "export const a: number = 1;\nconst b: string = ;\n",
      },
      says: /^loading handler\.ts: SyntaxError: Expression expected\n[^\n]*util\.ts:2\n/,
    },
    {
      name: "a module that is not there, imported by TypeScript",
      files: {
        "handler.ts": 'import { a } from "./none.js";\nexport const main = (): string => a;',
      },
      says: /^loading handler\.ts: Cannot find module '[^']*none\.js' imported from /,
    },
    {
      name: "a module that is not there, required by TypeScript",
      files: { "handler.cts": 'const a: string = require("./none.js");' },
      says: /^loading handler\.cts: Cannot find module '\.\/none\.js'\n[^]*at .*handler\.cts:1/,
    },
    {
      name: "no main",
      files: { "handler.js": "exports.greet = exports.other = () => {};" },
      says: /^loading handler\.js: it does not export a function named main; its exports are (?:other, greet|greet, other); name the handler by HANDLER_FUNC_NAME below env of spry\.yaml, and one of AWS Lambda by `handler: file\.name` with `dialect: lambda`\n$/,
    },
    {
      name: "no exports",
      files: { "handler.js": "" },
      says: /^loading handler\.js: it does not export a function named main; it has no exports\n$/,
    },
    {
      name: "a main that is no function",
      files: { "handler.js": "exports.main = 1;" },
      says: /^loading handler\.js: it does not export a function named main; its exports are main\n$/,
    },
    {
      name: "another target",
      files: {
        "handler.js": `process.env.FUNCTION_TARGET = "b"; require("@google-cloud/functions-framework").http("a", () => {});`,
      },
      says: /^loading the Function: FUNCTION_TARGET names b, which does not exist; registered functions are a\n$/,
    },
    {
      name: "no file",
      files: { "package.json": "{}" },
      says: /^loading the Function: it has neither handler\.js nor handler\.mjs, /,
    },
    {
      name: "a broken package.json",
      files: { "handler.js": hello, "package.json": "{" },
      says: /^loading package\.json: /,
    },
  ];
  test.each(mistakes)("or says why not: $name", async ({ files, says }) => {
    const { code, stderr } = await failToStart(files);
    expect(code).toBe(1);
    expect(stderr).toMatch(says);
  });

  test.each([
    ["0", "process.exit(0);", "with code 0"],
    ["none", "process.exit();", "with code 0"],
    ["another", "process.exit(3);", "with code 3"],
    ["the one that was set", "process.exitCode = 4; process.exit();", "with code 4"],
    ["0 after a wait", "await 1; process.exit(0); export {};", "with code 0"],
  ])(
    "an exit with the code %s while it is loaded is a failure that is said",
    async (_, text, says) => {
      const { code, stderr } = await failToStart({ "handler.mjs": `// First.\n${text}\n` });
      expect(code).toBeGreaterThan(0);
      expect(stderr).toMatch(
        new RegExp(
          `^loading the Function: the process ended ${says} while it was loaded, by process\\.exit\n\\s+at [^\n]*handler\\.mjs:2`,
        ),
      );
    },
  );

  test.each([
    [
      "no exports and no server, while something runs",
      { "handler.js": "setInterval(() => {}, 1000);" },
      "handler.js has no exports and no listening server yet\n",
    ],
    [
      "exports, and none of them a handler",
      { "handler.js": "setInterval(() => {}, 1000); exports.a = 1; exports.b = 2;" },
      "handler.js has no handler, only a, b, and no listening server yet\n",
    ],
    [
      "a top-level await that waits",
      { "handler.mjs": "setInterval(() => {}, 1000); await new Promise(() => {});" },
      "handler.mjs has not loaded yet: if a top-level await waits, the Function starts when that ends\n",
    ],
    [
      "a start that waits",
      {
        "handler.js": `${hello} exports.start = () => new Promise((resolve) => setTimeout(resolve, 3600_000));`,
      },
      "the Function's start has not ended yet\n",
    ],
  ])("or says soon what it waits for: %s", async (_, files, says) => {
    const waiting = await waitToStart(files);
    await expect.poll(waiting.stderr).toBe(says);
    expect(waiting.process.exitCode).toBeNull();
  });

  test.each([
    [
      "a top-level await that nothing can end",
      { "handler.mjs": "await new Promise(() => {});" },
      /^loading handler\.mjs: a top-level await waits for what never comes: nothing is left to run\n/,
    ],
    [
      "one in another file, after a while",
      {
        "handler.mjs": 'import "./other.mjs";',
        "other.mjs": "setTimeout(() => {}, 1200); await new Promise(() => {});",
      },
      /^handler\.mjs has not loaded yet[^\n]*\nloading handler\.mjs: a top-level await waits for what never comes/,
    ],
    [
      "a start that nothing can end",
      { "handler.js": `${hello} exports.start = () => new Promise(() => {});` },
      /^starting the Function: it waits for what never comes: nothing is left to run\n/,
    ],
    [
      "a program that has ended",
      { "handler.js": "setTimeout(() => {}, 1200);" },
      /^handler\.js has no exports and no listening server yet\nloading handler\.js: it does not export a function named main; it has no exports\n$/,
    ],
  ])("or ends once nothing is left to wait for: %s", async (_, files, says) => {
    const { code, stderr } = await failToStart(files);
    expect(code).toBe(1);
    expect(stderr).toMatch(says);
  });

  test("or ends at once as well where the process had waited for its Function", async () => {
    const warm = startWarmProcess();
    const ended = once(warm.process, "close");
    const writing = warm.hand("console.log('run');", {});
    writing.catch(() => {});
    expect(await ended).toEqual([1, null]);
    expect(warm.stderr()).toMatch(/it has no exports\n$/);
  });

  test("or says which setting is wrong", async () => {
    const { code, stderr } = await failToStart(hello, { FUNC_TIMEOUT: "soon" });
    expect(code).toBe(1);
    expect(stderr).toMatch(/FUNC_TIMEOUT=soon: expected a number/);
  });
});
