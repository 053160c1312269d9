import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { bundleRuntime, compileRuntime, layOut, type RuntimeFile } from "../index.ts";

const bundled = await bundleRuntime();

async function compiled(): Promise<RuntimeFile[]> {
  return await compileRuntime(bundled, process.execPath);
}

/** What V8 says of the bytecode, and what the runtime says when it does not find its Function: that it runs. */
function startWith(files: readonly RuntimeFile[]): { stderr: string; isRejected: string } {
  const dir = mkdtempSync(path.join(tmpdir(), "spry-bytecode-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const start = layOut(dir, files, {});
  const watched = `const vm = require("node:vm");
    vm.Script = class extends vm.Script {
      constructor(...args) { super(...args); console.log(this.cachedDataRejected); }
    };
    process.stderr.write = (text) => console.log(text);
    require(${JSON.stringify(start)});`;
  const run = () => execFileSync(process.execPath, ["-e", watched], { env: {}, stdio: "pipe" });
  try {
    run();
    throw new Error("it has no Function, and did not end");
  } catch (error) {
    const { stdout } = error as { stdout: Buffer };
    const [isRejected = "", ...stderr] = stdout.toString().split("\n");
    return { isRejected, stderr: stderr.join("\n") };
  }
}

test("the bytecode is the same each time, and this Node.js takes it", async () => {
  const [once, again] = [await compiled(), await compiled()];
  expect(once.length).toBe(bundled.length + 1);
  expect(once).toEqual(again);
  expect(startWith(once)).toMatchObject({
    isRejected: "false",
    stderr: expect.stringContaining("it has neither handler.js"),
  });
});

test.each<{ what: string; isRejected: string; change: (bytes: Buffer) => Buffer | undefined }>([
  { what: "is not there", isRejected: "undefined", change: () => undefined },
  { what: "is cut off", isRejected: "true", change: (bytes) => bytes.subarray(0, 1000) },
  { what: "is empty", isRejected: "true", change: () => Buffer.alloc(0) },
  { what: "is of another V8", isRejected: "true", change: otherVersion },
])("it starts all the same when the bytecode $what", async ({ isRejected, change }) => {
  const files = (await compiled()).flatMap((file) => {
    if (!file.path.endsWith(".bytecode")) return [file];
    const content = change(file.content);
    return content ? [{ ...file, content }] : [];
  });
  expect(startWith(files)).toMatchObject({
    isRejected,
    stderr: expect.stringContaining("it has neither handler.js"),
  });
});

/** The second word is a digest of the version (V8, `SerializedCodeData`). */
function otherVersion(bytes: Buffer): Buffer {
  const other = Buffer.from(bytes);
  other.writeUInt32LE((other.readUInt32LE(4) ^ 1) >>> 0, 4);
  return other;
}

test.each([
  { what: "that is no Node.js", node: "/bin/false", reason: "it failed with exit code 1" },
  { what: "that does nothing", node: "/bin/true", reason: "it produced no bytecode" },
  { what: "that is not there", node: "/nowhere/node", reason: "spawn /nowhere/node ENOENT" },
])("a program $what compiles nothing, and it is said", async ({ node, reason }) => {
  await expect(compileRuntime(bundled, node)).rejects.toThrow(
    `compiling the Node.js runtime with ${node}: ${reason}`,
  );
});

test("what cannot be started has its error said", async () => {
  const broken = bundled.map((file) =>
    file.path === "runtime.js" ? { ...file, content: Buffer.from("(function () {") } : file,
  );
  await expect(compileRuntime(broken, process.execPath)).rejects.toThrow("SyntaxError: ");
});
