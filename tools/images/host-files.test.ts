import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createLayer } from "@spry/image";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HostFiles, onHost } from "./host-files.ts";
import { recipes } from "./images.ts";
import { bundle } from "./programs.ts";

let dir = "";
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), "host-files-"));
  mkdirSync(path.join(dir, "tree/inner/test"), { recursive: true });
  writeFileSync(path.join(dir, "tree/program"), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(path.join(dir, "tree/inner/module.py"), "pass\n");
  writeFileSync(path.join(dir, "tree/inner/test/left-out.py"), "pass\n");
  symlinkSync("program", path.join(dir, "tree/link"));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const paths = (files: HostFiles) =>
  files
    .list()
    .map((file) => file.path)
    .sort();

test("a directory comes with its links, and without what is left out", () => {
  const files = new HostFiles();
  files.directory(path.join(dir, "tree"), "/opt/tree", new Set(["test"]));
  expect(paths(files)).toEqual(["opt/tree/inner/module.py", "opt/tree/link", "opt/tree/program"]);
});

test("what a layer below has is not there again", () => {
  const below = new HostFiles();
  below.copy(path.join(dir, "tree/program"), "/bin/program");
  const files = new HostFiles(below);
  files.copy(path.join(dir, "tree/program"), "/bin/program");
  expect(paths(files)).toEqual([]);
});

describe.runIf(process.platform === "linux")("a program of this machine", () => {
  test("comes with the libraries and the loader that it asks for, the same each time", async () => {
    const make = async () => {
      const files = new HostFiles();
      await files.program(onHost("sh") ?? "", "/bin/sh");
      return files;
    };
    const files = await make();
    expect(paths(files)).toEqual(
      expect.arrayContaining(["bin/sh", expect.stringMatching(/ld-linux|ld-musl/)]),
    );
    const digestOf = async (one: HostFiles) => (await createLayer(one.list())).descriptor.digest;
    expect(await digestOf(await make())).toBe(await digestOf(files));
  });
});

test("every runtime has an image, and every language a builder", async () => {
  const all = (await recipes()).map(({ name }) => name);
  expect(all).toEqual([
    "controller",
    "registry",
    "gateway",
    "dashboard",
    "eventing",
    "builder",
    "nodejs20",
    "nodejs22",
    "nodejs24",
    "nodejs26",
    "python312",
    "builder-python312",
    "python314",
    "builder-python314",
  ]);
});

test.each(["controller", "gateway", "registry", "dashboard", "eventing"] as const)(
  "the program of %s reads no file of a checkout when it starts",
  async (name) => {
    expect(Buffer.from(await bundle(name)).toString()).not.toContain("../package.json");
  },
);
