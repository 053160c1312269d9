/** `spry init` as the original's command line has it, and from a Git repository. */
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { GitHttpServer, TestRepository } from "@spry/source/testing";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { load } from "js-yaml";
import { init } from "./init.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), "spry-init-test-"));
  vi.spyOn(console, "log").mockReturnValue(undefined);
});
afterEach(() => vi.restoreAllMocks());

const read = (...names: string[]) => readFileSync(path.join(home, ...names), "utf8");

test("--schema-version writes what the original's init function writes, --vscode a schema", async () => {
  const dir = path.join(home, "orders");
  await init(undefined, { dir, schemaVersion: "v1", runtime: "python312", vscode: true });
  expect(load(read("orders", "config.yaml"))).toEqual({
    schemaVersion: "v1",
    name: "orders",
    runtime: "python312",
    source: {
      sourceType: "inline",
      sourceHandlerName: "handler.py",
      depsHandlerName: "requirements.txt",
    },
  });
  expect(read("orders", "handler.py")).toContain("def main(event, context):");
  expect(read("orders", "requirements.txt")).toBe("");
  const settings = JSON.parse(read("orders", ".vscode", "settings.json")) as object;
  expect(settings).toEqual({ "yaml.schemas": { "./.vscode/config.schema.json": "config.yaml" } });
});

test("--url writes a config.yaml alone, which builds from that repository", async () => {
  const url = "https://git.example/shop.git";
  await init(path.join(home, "shop"), { url, baseDir: "/orders", namespace: "team" });
  expect(load(read("shop", "config.yaml"))).toMatchObject({
    namespace: "team",
    source: { sourceType: "git", url, reference: "main", baseDir: "/orders" },
  });
  expect(existsSync(path.join(home, "shop", "handler.js"))).toBe(false);
});

test("--from copies a folder of a repository, and adds what makes it a directory of ours", async () => {
  const repository = new TestRepository();
  repository.commit({ "fn/handler.mjs": "export default {};\n", "other.txt": "" });
  await using server = await GitHttpServer.start({ root: repository.root });
  const from = `${server.origin}/shop.git`;
  const dir = path.join(home, "copy");
  await init(dir, { from, baseDir: "fn" });
  expect(read("copy", "handler.mjs")).toBe("export default {};\n");
  expect(read("copy", "spry.yaml")).toBe("name: copy\n");
  expect(existsSync(path.join(dir, "other.txt"))).toBe(false);
  await expect(init(dir, { from, baseDir: "fn" })).rejects.toThrow("already has");
  const lost = init(path.join(home, "x"), { from, reference: "nope" });
  await expect(lost).rejects.toThrow("cannot be fetched");
});

test.each([
  [{ from: "https://a.example/b", url: "https://a.example/b" }, "--from copies a repository"],
  [{ schemaVersion: "v7" }, "v7 is not a version of config.yaml"],
  [{ schemaVersion: "v0", template: "hono" }, "--template cannot be combined with"],
  [{ reference: "main" }, "--reference and --base-dir apply only to a Git repository"],
])("%o is one sentence", async (options, sentence) => {
  await expect(init(path.join(home, "never"), options)).rejects.toThrow(sentence);
  expect(existsSync(path.join(home, "never"))).toBe(false);
});

test.each([
  ["/dev/null/x", "/dev/null/x/handler.ts cannot be written: a part of its path is a file"],
  ["/proc/x", "/proc/x/handler.ts cannot be written: nothing can be created there"],
])("%s cannot become a directory, which is said at once", async (dir, message) => {
  await expect(init(dir, {})).rejects.toThrow(message);
});
