import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { listSource } from "./files.ts";
import { copiesForLinks } from "./source-links.ts";

function directory(files: Record<string, string>): string {
  const root = mkdtempSync(path.join(tmpdir(), "source-"));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    writeFileSync(path.join(root, name), content);
  }
  return root;
}

const pathsIn = (root: string) => listSource(root).files.map((file) => file.path);

test("a source is what is not ignored, made elsewhere or secret", () => {
  const root = directory({
    "handler.js": "",
    "lib/a.js": "",
    "lib/.gitignore": "*.tmp\n!keep.tmp\n",
    "lib/a.tmp": "",
    "lib/keep.tmp": "",
    "dist/x.js": "",
    ".gitignore": "dist/\n*.log\n",
    "debug.log": "",
    "node_modules/x/index.js": "",
    ".git/HEAD": "",
    ".venv/bin/python": "",
    ".env": "TOKEN=1",
    ".env.local": "TOKEN=1",
    ".env.example": "TOKEN=",
    "certs/server.key": "",
    id_ed25519: "",
  });
  expect(pathsIn(root)).toEqual([
    ".env.example",
    ".gitignore",
    "handler.js",
    "lib/.gitignore",
    "lib/a.js",
    "lib/keep.tmp",
  ]);
  expect(listSource(root).keptBack).toEqual([
    ".env",
    ".env.local",
    "certs/server.key",
    "id_ed25519",
  ]);
});

test(".spryignore replaces .gitignore", () => {
  const root = directory({
    "handler.js": "",
    "built.js": "",
    ".gitignore": "built.js",
    ".spryignore": "*.md",
    "a.md": "",
  });
  expect(pathsIn(root)).toEqual([".gitignore", ".spryignore", "built.js", "handler.js"]);
});

test("links inside stay links, to files and to folders", () => {
  const root = directory({ "handler.js": "x", "lib/a.js": "12345" });
  symlinkSync("handler.js", path.join(root, "index.js"));
  symlinkSync("lib", path.join(root, "code"));
  symlinkSync("..", path.join(root, "lib/up"));
  symlinkSync("node_modules/x", path.join(root, "x"));
  const { files } = listSource(root);
  expect(files.map((file) => [file.path, file.link?.text, file.link?.isFolder, file.size])).toEqual(
    [
      ["code", "lib", true, 0],
      ["handler.js", undefined, undefined, 1],
      ["index.js", "handler.js", false, 0],
      ["lib/a.js", undefined, undefined, 5],
      ["lib/up", "..", true, 0],
      ["x", "node_modules/x", true, 0],
    ],
  );
  expect(copiesForLinks(files).map((file) => file.path)).toEqual([
    "code/a.js",
    "index.js",
    "lib/up/handler.js",
    "lib/up/lib/a.js",
  ]);
});

test.each<[name: string, target: string, message: string]>([
  ["host", "/etc/hostname", "host is a symbolic link out of the directory, to /etc/hostname"],
  ["lib/up", "../../x", "lib/up is a symbolic link out of the directory, to ../../x"],
  ["self", "self", "self is a symbolic link that leads in a circle, to self"],
  ["none", "none.js", "none is a symbolic link to a file that does not exist, none.js"],
  ["key", "id_rsa", "key is a symbolic link to id_rsa, which is not among the files that are sent"],
  ["built", "dist/a.js", "built is a symbolic link to dist, which is not among the files"],
])("a link that cannot be sent is refused: %s to %s", (name, target, message) => {
  const files = { "handler.js": "x", "lib/a.js": "", id_rsa: "secret", "dist/a.js": "" };
  const root = directory({ ...files, ".gitignore": "dist" });
  symlinkSync(target, path.join(root, name));
  expect(() => listSource(root)).toThrow(message);
});

test("an absolute link to a file of the directory is refused, as it leads nowhere elsewhere", () => {
  const root = directory({ "handler.js": "x" });
  symlinkSync(path.join(root, "handler.js"), path.join(root, "index.js"));
  expect(() => listSource(root)).toThrow("index.js is a symbolic link with an absolute path, ");
});

test("the largest files of a directory that is too large are named", () => {
  const root = directory({
    "handler.js": "x",
    "big.bin": "x".repeat(2000),
    "bigger.bin": "x".repeat(3000),
  });
  expect(() => listSource(root, { limits: { files: 10, bytes: 4000, depth: 3 } })).toThrow(
    "the directory has 3 files and 5.0 kB; a source has at most 10 files and 4.0 kB. The largest: bigger.bin (3.0 kB), big.bin (2.0 kB), handler.js (0.0 kB)",
  );
});
