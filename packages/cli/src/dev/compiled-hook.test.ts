/** Compiled code in place of the handler's file, in a process as `spry dev` starts it. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { CompiledHook } from "./compiled-hook.ts";

test("code is read once, however many modules are loaded after it", () => {
  const scratch = mkdtempSync(path.join(tmpdir(), "compiled-hook-"));
  onTestFinished(() => rmSync(scratch, { recursive: true, force: true }));
  const root = path.join(scratch, "function");
  mkdirSync(root);
  const handler = path.join(root, "handler.ts");
  writeFileSync(handler, "enum NodeJsRefusesIt { A }\n");
  writeFileSync(path.join(root, "other.cjs"), `module.exports = "other";\n`);
  writeFileSync(path.join(scratch, "main.cjs"), `console.log(require(process.env.HANDLER));\n`);
  const hook = new CompiledHook(scratch);
  // After this nothing can be read from there any more.
  const gone = `require("node:fs").rmSync(${JSON.stringify(path.join(scratch, "compiled.json"))});`;
  const text = `${gone}\nmodule.exports = "compiled, " + require("./other.cjs");\n`;
  hook.use({ handler, code: { path: "handler.js", format: "commonjs", text, inputs: [] } });
  const args = ["--require", hook.file, path.join(scratch, "main.cjs")];
  const env = { ...process.env, HANDLER: handler };
  const output = execFileSync(process.execPath, args, { encoding: "utf8", env });
  expect(output).toBe("compiled, other\n");
});
