/** Types at run time, for frameworks that inject by them: by the TypeScript that the directory has installed. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { SourceMap, type SourceMapping } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { stop } from "esbuild";
import { afterAll, expect, test } from "vitest";
import { compilerProblems } from "../deploy/check-syntax.ts";
import { compile } from "./compile.ts";
import { openProject } from "./project.ts";

const home = mkdtempSync(path.join(tmpdir(), "metadata-"));
afterAll(async () => {
  rmSync(home, { recursive: true, force: true });
  await stop();
});
const installed = path.dirname(fileURLToPath(import.meta.resolve("typescript/package.json")));

let count = 0;
function directoryWith(files: Record<string, string>, withTypeScript = true) {
  const root = path.join(home, String(count++));
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
  }
  mkdirSync(path.join(root, "node_modules"));
  if (withTypeScript) symlinkSync(installed, path.join(root, "node_modules/typescript"));
  return openProject(root);
}

const settings = `{
  // As frameworks' own templates have it.
  "extends": ["./base"],
  "compilerOptions": {
    "experimentalDecorators": true, /* and more */
    "noEmit": true, "strict": true, "paths": { "@lib/*": ["./lib/*"] },
  },
}`;
const files = {
  "package.json": `{ "type": "module" }`,
  "tsconfig.json": settings,
  "base.json": `{ "compilerOptions": { "emitDecoratorMetadata": true, "target": "es2022", "lib": ["es2022"], "isolatedModules": true, "verbatimModuleSyntax": false, "allowImportingTsExtensions": true, "incremental": true, "declaration": true } }`,
  "lib/clock.ts": `export class Clock { now() { return 7; } }\nexport interface Shape { a: string }\n`,
  "handler.ts": `import { Clock, Shape } from "@lib/clock";
const seen: Record<string, unknown[]> = {};
Object.assign(Reflect, {
  metadata: (key: string, value: unknown) => (_: object, name: string = "class") => { (seen[name] ??= []).push(key, ...[value].flat()); },
});
enum Kind { A = "a" }
const known = (..._: any[]): any => {};
@known class Service {
  @known when!: Date;
  constructor(readonly clock: Clock, readonly shape: Shape, readonly kind: Kind) {}
  @known async fail(@known times: number): Promise<void> { throw new Error("as asked"); }
}
export const main = async () => {
  const names = (list: unknown[] = []) => list.map((each) => typeof each === "function" ? each.name : each);
  return { class: names(seen.class), when: names(seen.when), fail: names(seen.fail) };
};
`,
};

test("a class's types are there at run time, and places are those of the source", async () => {
  const before = readdirSync(tmpdir()).filter((name) => name.startsWith("spry-typescript-"));
  const project = directoryWith(files);
  const code = await compile(project);
  expect(code.inputs.toSorted()).toEqual(["handler.ts", "lib/clock.ts"]);
  const file = path.join(project.root, code.path);
  writeFileSync(file, code.text);
  const { main } = (await import(pathToFileURL(file).href)) as {
    main: () => Promise<Record<string, unknown>>;
  };
  expect(await main()).toEqual({
    class: ["design:paramtypes", "Clock", "Object", "String"],
    when: ["design:type", "Date"],
    fail: [
      "design:returntype",
      "Promise",
      "design:paramtypes",
      "Number",
      "design:type",
      "Function",
    ],
  });
  const encoded = /sourceMappingURL=[^,]*,(\S+)/.exec(code.text)?.[1] ?? "";
  const map = new SourceMap(JSON.parse(Buffer.from(encoded, "base64").toString()));
  const lineIn = (text: string) => text.slice(0, text.indexOf("throw new")).split("\n").length;
  const entry = map.findEntry(lineIn(code.text) - 1, 40) as SourceMapping;
  expect(entry.originalSource).toBe("handler.ts");
  expect(entry.originalLine + 1).toBe(lineIn(files["handler.ts"]));
  const after = readdirSync(tmpdir()).filter((name) => name.startsWith("spry-typescript-"));
  expect(after).toEqual(before);
});

test("a mistake has its place", async () => {
  const project = directoryWith({ ...files, "lib/clock.ts": "@known class A {}\nconst x = ;\n" });
  const problems = compilerProblems(await compile(project).catch((error: unknown) => error));
  expect(problems[0]).toMatchObject({ file: "lib/clock.ts", line: 2, column: 11 });
});

test("without TypeScript in the directory it says what to install", async () => {
  await expect(compile(directoryWith(files, false))).rejects.toMatchObject({
    name: "UserError",
    message: expect.stringMatching(/emitDecoratorMetadata, which needs the typescript package/),
    wayOut: "install it with `npm install --save-dev typescript`",
  });
});

test.each([
  [
    "that is a comment",
    `{ "compilerOptions": { "experimentalDecorators": true, // "emitDecoratorMetadata": true\n } }`,
  ],
  [
    "that another file sets and this one takes back",
    `{ "extends": "./base.json", "compilerOptions": { "experimentalDecorators": true, "emitDecoratorMetadata": false } }`,
  ],
])("a setting %s needs no TypeScript", async (_, text) => {
  const { text: code } = await compile(
    directoryWith(
      {
        ...files,
        "tsconfig.json": text.replace('{ "exp', '{ "paths": { "@lib/*": ["./lib/*"] }, "exp'),
      },
      false,
    ),
  );
  expect(code).not.toContain("design:");
});
