/** Modules that a Function may import without depending on them: files beside it, and hooks where they must replace a package. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { send, startFunction, startWarmProcess } from "./testing/running-function.ts";

const theirs = {
  "node_modules/@google-cloud/functions-framework/index.js": `throw new Error("theirs");`,
  "node_modules/sdk/index.js": `module.exports = { getFunctionName: () => "theirs" };`,
};

const packages = [
  {
    how: "required",
    file: "handler.js",
    code: `const { http } = require("@google-cloud/functions-framework"); const sdk = require("sdk");
      http("hello", (req, res) => res.send(sdk.getFunctionName()));`,
  },
  {
    how: "imported",
    file: "handler.mjs",
    code: `import { http } from "@google-cloud/functions-framework"; import sdk from "sdk";
      http("hello", (req, res) => res.send(sdk.getFunctionName()));`,
  },
];

describe("of packages that the Function depends on", () => {
  test.each(packages)("the framework is ours and sdk is theirs, $how", async ({ file, code }) => {
    const { url } = await startFunction({ ...theirs, [file]: code });
    expect((await send(url)).body).toBe("theirs");
  });

  test.each(packages)("neither is needed, $how", async ({ file, code }) => {
    const { url } = await startFunction({ [file]: code });
    expect((await send(url)).body).toBe("hello");
  });
});

test.each(packages)("they are there without files, $how", async ({ file, code }) => {
  const { hand, directory } = startWarmProcess();
  rmSync(join(directory, "node_modules"), { recursive: true });
  const url = await hand({ [file]: code }, { FUNC_NAME: "hello" });
  expect((await send(url)).body).toBe("hello");
});
