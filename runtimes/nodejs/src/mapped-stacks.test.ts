/** `error.stack` of code that was compiled: the places that its author knows, wherever the Function takes it. */
import { stripTypeScriptTypes } from "node:module";
import { buildSync } from "esbuild";
import { expect, test } from "vitest";
import { failToStart, send, startFunction } from "./testing/running-function.ts";

const source = `interface Event { extensions: { request: { path: string } } }
enum Kind { Response, Thrown }
class Failing {
  constructor(private readonly kind: Kind) {}
  fail(): never { throw new RangeError(\`failed \${Kind[this.kind]}\`); }
}
export const main = (event: Event): unknown => {
  if (event.extensions.request.path === "/throw") new Failing(Kind.Thrown).fail();
  try {
    return new Failing(Kind.Response).fail();
  } catch (error) {
    const { stack } = error as Error;
    console.log(stack);
    process.stdout.write(\`own logger: \${stack}\\n\`);
    console.error(error);
    return stack;
  }
};
`;

/** As \`spry deploy\` makes it. */
function bundled(text: string): string {
  const options = { stdin: { contents: text, loader: "ts", sourcefile: "handler.ts" } } as const;
  const result = buildSync({
    ...options,
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    sourcemap: "inline",
    sourcesContent: false,
    banner: { js: "// one line\n// and more" },
  });
  return result.outputFiles[0]?.text ?? "";
}

/** As the build of an image makes it: the file keeps its name. */
function transformed(text: string): string {
  const sourceUrl = "handler.ts";
  const output = stripTypeScriptTypes(text, { mode: "transform", sourceMap: true, sourceUrl });
  const [comment = "", encoded = ""] = /\n\n\/\/# sourceMappingURL=[^,]*,(\S+)$/.exec(output) ?? [];
  const map = JSON.parse(Buffer.from(encoded, "base64").toString()) as object;
  const data = Buffer.from(JSON.stringify({ ...map, sourcesContent: [text] })).toString("base64");
  return output.replace(comment, `\n\n//# sourceMappingURL=data:application/json;base64,${data}\n`);
}

const manifest = { "package.json": `{"type":"module"}` };
const rows: [string, Record<string, string>, Record<string, string>][] = [
  ["one file", { "handler.js": bundled(source), "handler.ts": source }, {}],
  ["a large file", { "handler.js": bundled(source + "//".padEnd(9000, "x")) }, {}],
  ["a file that keeps its name", { "handler.ts": transformed(source) }, {}],
  [
    "a file that keeps its name, where Node.js maps",
    { "handler.ts": transformed(source) },
    { NODE_OPTIONS: "--enable-source-maps" },
  ],
];

test.each(rows)("%s: stacks are those of the source everywhere", async (_, files, env) => {
  const fn = await startFunction({ ...files, ...manifest }, env);
  const stack =
    /RangeError: failed Response\n +at .*\bfail \(.*function\/handler\.ts:5:\d+\)\n +at .*main \(.*function\/handler\.ts:10:\d+\)\n/;
  expect((await send(fn.url)).body).toMatch(stack);
  await send(`${fn.url}/throw`);
  await expect
    .poll(fn.stderr)
    .toMatch(
      /the handler threw: RangeError: failed Thrown\n +at .*handler\.ts:5:\d+\)\n +at .*handler\.ts:8:\d+\)/,
    );
  expect(fn.stderr()).toMatch(/^RangeError: failed Response\n +at .*handler\.ts:5:/m);
  expect(fn.stdout()).toMatch(/own logger: RangeError: failed Response\n +at .*handler\.ts:5:/);
  expect(fn.stdout()).toMatch(/^RangeError: failed Response\n +at .*handler\.ts:5:/m);
  expect(fn.stdout() + fn.stderr()).not.toMatch(/handler\.js:/);
});

test("an error while it loads shows the author's line", async () => {
  const text = `enum Kind { A }\nexport const main = (): Kind => Kind.A;\nthrow new TypeError("no " + Kind.A);\n`;
  const { stderr } = await failToStart({ "handler.ts": transformed(text), ...manifest });
  expect(stderr).toMatch(
    /^loading handler\.ts: TypeError: no 0\n[^\n]*handler\.ts:3\nthrow new TypeError\("no " \+ Kind\.A\);\n +\^\n/,
  );
});

test("code without a map, or with its own way of writing stacks, is left alone", async () => {
  const plain = await startFunction(`exports.main = () => Error.prepareStackTrace.name;`);
  expect((await send(plain.url)).body).toBe("ErrorPrepareStackTrace");
  const own = `Error.prepareStackTrace = () => "mine";\nenum A { B }\nexport const main = () => new Error("x").stack;\n`;
  const fn = await startFunction({ "handler.ts": transformed(own), ...manifest });
  expect((await send(fn.url)).body).toBe("mine");
});
