import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { withNameHere } from "./name-here.ts";
import { createProgram } from "./program.ts";

const root = mkdtempSync(path.join(tmpdir(), "spry-name-here-"));
const former = process.cwd();
afterAll(() => {
  process.chdir(former);
  rmSync(root, { recursive: true, force: true });
});

const handler = "export const main = () => 1;\n";
let count = 0;

/** The words, in a directory with these files. */
function inDirectory(files: Record<string, string>, line: string): Promise<readonly string[]> {
  const dir = path.join(root, `dir-${++count}`);
  for (const [name, text] of Object.entries({ "handler.js": handler, ...files })) {
    mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
    writeFileSync(path.join(dir, name), text);
  }
  process.chdir(dir);
  return withNameHere(line.split(" "), createProgram(), createProgram);
}

describe("in a Function's directory", () => {
  test.each([
    ["logs", "logs shop"],
    ["logs -f --tail 3", "logs -f --tail 3 shop"],
    ["rollback", "rollback shop"],
    ["-n other describe", "-n other describe shop"],
    ["invoke --data x -X PUT", "invoke --data x -X PUT shop"],
    // A name, or no place for one.
    ["logs hello", "logs hello"],
    ["-n other logs -f hello", "-n other logs -f hello"],
    ["invoke hello /path", "invoke hello /path"],
    ["delete", "delete"],
    ["scale 3", "scale 3"],
    ["deploy", "deploy"],
    ["env list", "env list"],
    ["get", "get"],
  ])("spry %s is spry %s", async (line, expected) => {
    const words = await inDirectory({ "spry.yaml": "name: shop\n" }, line);
    expect(words.join(" ")).toBe(expected);
  });

  test("its namespace is meant, unless another one is named", async () => {
    const files = { "spry.yaml": "name: shop\nnamespace: sales\n" };
    expect(await inDirectory(files, "logs")).toEqual(["logs", "shop", "--namespace", "sales"]);
    expect(await inDirectory(files, "logs -n b")).toEqual(["logs", "-n", "b", "shop"]);
  });

  test.each([
    ["delete shop", "--namespace sales"],
    ["delete function/shop", "--namespace sales"],
    ["logs -f shop --tail 3", "--namespace sales"],
    ["get shop", "--namespace sales"],
    ["env set shop A=1", "--namespace sales"],
    ["schedule run shop nightly", "--namespace sales"],
    ["scale shop 2", "--namespace sales"],
    ["delete shop -n b", ""],
    ["delete other", ""],
    ["env list other", ""],
    ["secrets set keys A=1", "--namespace sales"],
    ["secrets import keys .env", "--namespace sales"],
    ["secrets list", "--namespace sales"],
    ["secrets set keys A=1 -n b", ""],
    ["-n b secrets list", ""],
  ])("its name means it: spry %s has %s", async (line, more) => {
    const files = { "spry.yaml": "name: shop\nnamespace: sales\n" };
    expect((await inDirectory(files, line)).join(" ")).toBe(`${line} ${more}`.trim());
  });

  test("names of two namespaces are refused, and a file with a mistake is not in the way", async () => {
    const files = { "spry.yaml": "name: shop\nnamespace: sales\n" };
    await expect(inDirectory(files, "delete shop other")).rejects.toThrow("different namespaces");
    expect(await inDirectory({ "spry.yaml": "name: [\n" }, "logs x")).toEqual(["logs", "x"]);
  });

  test("Secrets are those of its Functions' namespace", async () => {
    const files = {
      "spry.yaml": "namespace: sales\nfunctions:\n  a: { directory: a }\n  b: { directory: b }\n",
      "a/handler.js": handler,
      "b/handler.js": handler,
    };
    const line = "secrets set keys A=1";
    const words = await inDirectory(files, line);
    expect(words.join(" ")).toBe(`${line} --namespace sales`);
    expect(await inDirectory({ "spry.yaml": "name: [\n" }, "secrets list")).toEqual([
      "secrets",
      "list",
    ]);
  });

  test("of several, one has to be named", async () => {
    const files = {
      "spry.yaml": "functions:\n  a: { directory: a }\n  b: { directory: b }\n",
      "a/handler.js": handler,
      "b/handler.js": handler,
    };
    const words = inDirectory(files, "logs");
    await expect(words).rejects.toMatchObject({ wayOut: "name one of them: a, b" });
  });

  test("without a file that says so, no directory is meant", async () => {
    expect(await inDirectory({}, "logs")).toEqual(["logs"]);
  });
});
