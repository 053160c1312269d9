/** What is not a file where a start reads one is named before it is read. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { UserError } from "../user-error.ts";
import { openDataDir } from "./data-dir.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "whole-"));
  openDataDir(root).unlock();
});
afterEach(() => rmSync(root, { recursive: true }));

function refusal(): UserError {
  try {
    openDataDir(root).unlock();
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    return error as UserError;
  }
  throw new Error("it was opened");
}

const known = [
  ..."kubeconfig gateway.kubeconfig endpoints.json gateway.json npmrc pip.conf".split(" "),
  ..."system-images.json counts-token metrics.token dashboard-key registry.json".split(" "),
  ..."api/state.db api/state.db-wal api/state.db-acknowledged api/service-account.key".split(" "),
  ..."events/queue.db pki/ca.crt pki/ca.key pki/gateway.key pki/front-proxy/ca.key".split(" "),
  ..."logs/spry.log logs/gateway.log".split(" "),
];

describe.each(known)("%s", (name) => {
  const file = () => path.join(root, name);
  beforeEach(() => mkdirSync(path.dirname(file()), { recursive: true }));

  test("as a directory, a named pipe or a link to nowhere ends the start, with the way out", () => {
    mkdirSync(file());
    expect(refusal().message).toBe(`${file()} is a directory in place of a file`);
    rmSync(file(), { recursive: true });
    execFileSync("mkfifo", [file()]);
    expect(refusal().message).toBe(`${file()} is a named pipe in place of a file`);
    rmSync(file());
    symlinkSync("/nowhere/file", file());
    const { message, wayOut } = refusal();
    expect(message).toBe(`${file()} is a link to nowhere`);
    expect(wayOut).toMatch(/^(?:remove it|put a backup|restore it)/);
    rmSync(file());
    symlinkSync(file(), file());
    expect(refusal().message).toBe(`${file()} is a link to nowhere`);
  });
});

test.each(["api", "pki", "node", "registry", "logs", "events"])("%s as a file is named", (name) => {
  rmSync(path.join(root, name), { recursive: true, force: true });
  writeFileSync(path.join(root, name), "");
  expect(refusal().message).toBe(`${path.join(root, name)} is not a directory`);
});

test("a link to a file or a directory elsewhere serves, and what is not ours may be anything", () => {
  const elsewhere = path.join(root, "elsewhere");
  mkdirSync(elsewhere);
  rmSync(path.join(root, "logs"), { recursive: true });
  symlinkSync(elsewhere, path.join(root, "logs"));
  writeFileSync(path.join(elsewhere, "key"), "key");
  symlinkSync(path.join(elsewhere, "key"), path.join(root, "dashboard-key"));
  mkdirSync(path.join(root, "kubeconfig.d"));
  openDataDir(root).unlock();
});
