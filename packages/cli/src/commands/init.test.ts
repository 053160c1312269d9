/** `spry init` as the original's command line has it, and from a Git repository. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
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
  expect(settings).toMatchObject({
    "yaml.schemas": { "./.vscode/config.schema.json": "config.yaml" },
  });
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

interface EditorFile {
  configurations: { type: string }[];
  compounds: object[];
  tasks: { command: string; problemMatcher: { fileLocation: string[] }[] }[];
}
const parsed = (...names: string[]) => JSON.parse(read(...names)) as EditorFile;
const write = (file: string, text: string) => {
  mkdirSync(path.dirname(path.join(home, file)), { recursive: true });
  writeFileSync(path.join(home, file), text);
};

test.each([
  [
    "nodejs24",
    {
      type: "node",
      address: "127.0.0.1",
      port: 9229,
      restart: true,
      sourceMaps: true,
      skipFiles: expect.arrayContaining(["**/.cache/spry/**"]),
    },
  ],
  ["python312", { type: "debugpy", connect: { host: "127.0.0.1", port: 5678 } }],
])("F5 in VS Code starts spry dev and connects to it (%s)", async (runtime, attach) => {
  await init(path.join(home, "fn"), { runtime });
  const { configurations } = parsed("fn", ".vscode", "launch.json");
  const start = { name: "spry dev", request: "attach", preLaunchTask: "spry dev" };
  expect(configurations[0]).toMatchObject({ ...start, ...attach });
  const settings = parsed("fn", ".vscode", "settings.json");
  expect(settings).toEqual({ "debug.onTaskErrors": "debugAnyway" });
  const { tasks } = parsed("fn", ".vscode", "tasks.json");
  expect(tasks).toMatchObject([{ label: "spry dev", isBackground: true }]);
  expect(tasks[0]?.command).toMatch(/spry(?:\.mjs)? dev --inspect$/);
});

test("--vscode where code is already writes for VS Code only, and keeps what is there", async () => {
  write("old/handler.py", "def main(event, context): ...\n");
  write("old/.vscode/settings.json", "{}\n");
  const old = path.join(home, "old");
  await init(old, { vscode: true });
  expect(readdirSync(old).toSorted()).toEqual([".vscode", "handler.py"]);
  expect(parsed("old", ".vscode", "launch.json").configurations[0]?.type).toBe("debugpy");
  expect(read("old", ".vscode", "settings.json")).toBe("{}\n");
  expect(vi.mocked(console.log).mock.calls.flat().join("\n")).toMatch(
    /Created for old [^]*launch\.json[^]*Kept as they are [^]*settings\.json/,
  );
  await init(old, { vscode: true, force: true });
  expect(read("old", ".vscode", "settings.json")).toContain("yaml.schemas");
});

test("--vscode for several Functions attaches to each, and one start does all", async () => {
  const functions = "functions:\n  a:\n  b: { directory: code/b }\n  c:\n";
  write("several/spry.yaml", functions);
  for (const file of ["a/handler.js", "code/b/handler.py", "c/handler.ts"])
    write(`several/${file}`, "");
  await init(path.join(home, "several"), { vscode: true });
  const { configurations, compounds } = parsed("several", ".vscode", "launch.json");
  const names = ["Attach to a", "Attach to b", "Attach to c"];
  expect(compounds).toMatchObject([{ configurations: names, preLaunchTask: "spry dev" }]);
  expect(configurations.slice(0, 3)).toMatchObject([
    { name: names[0], port: 9229 },
    { name: names[1], connect: { port: 5678 } },
    { name: names[2], port: 9230 },
  ]);
  const [task] = parsed("several", ".vscode", "tasks.json").tasks;
  expect(task?.problemMatcher[1]?.fileLocation).toEqual(["relative", "${workspaceFolder}/code/b"]);
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
