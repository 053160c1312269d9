import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { systemFault } from "./system-fault.ts";

const thrownBy = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};
const none = path.join(tmpdir(), "does", "not", "exist");

test.each<[string, () => unknown, RegExp, RegExp?]>([
  ["a missing directory", () => readdirSync("/nowhere"), /^\/nowhere: it does not exist/],
  ["a missing temporary one", () => mkdtempSync(none), /does not exist/, /set TMPDIR/],
  ["a directory as a file", () => readFileSync(tmpdir()), /it is a directory/],
  ["a file as a directory", () => readdirSync("/proc/version"), /is not a directory/],
  ["a name that is too long", () => writeFileSync(`/tmp/${"x".repeat(300)}`, ""), /too long/],
])("%s", (_name, work, message, wayOut = /^$/) => {
  const fault = systemFault(thrownBy(work));
  expect(fault?.message).toMatch(message);
  expect(fault?.wayOut ?? "").toMatch(wayOut);
});

test.each([
  [{ code: "ENOSPC", syscall: "watch", path: "/x" }, "max_user_watches"],
  [{ code: "EMFILE", syscall: "watch", path: "/x" }, "max_user_instances"],
  [{ code: "EACCES", syscall: "listen", port: 80, address: "127.0.0.1" }, "above 1023"],
  [{ code: "ENOENT", syscall: "uv_cwd" }, "change to another"],
])("%j says what to do", (error, wayOut) => {
  expect(systemFault(error)?.wayOut).toContain(wayOut);
});

test("a port that is in use is named", async () => {
  const one = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => one.once("listening", resolve));
  const { port } = one.address() as { port: number };
  const other = createServer().listen(port, "127.0.0.1");
  const error = await new Promise((resolve) => other.once("error", resolve));
  one.close();
  expect(systemFault(error)?.message).toBe(`port ${port} of 127.0.0.1 is in use`);
});

test("a mistake of the program is not one of the machine", () => {
  expect(systemFault(new TypeError("x is not a function"))).toBeUndefined();
  expect(systemFault(undefined)).toBeUndefined();
});
