import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { listSource } from "./files.ts";

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

test("links to files inside are followed, others refused", () => {
  const root = directory({ "handler.js": "x", "lib/a.js": "" });
  symlinkSync("handler.js", path.join(root, "index.js"));
  expect(pathsIn(root)).toEqual(["handler.js", "index.js", "lib/a.js"]);
  symlinkSync("/etc/hostname", path.join(root, "host"));
  expect(() => listSource(root)).toThrow(
    "host is a symbolic link out of the directory, to /etc/hostname",
  );
});

test("the largest files of a directory that is too large are named", () => {
  const root = directory({
    "handler.js": "x",
    "big.bin": "x".repeat(2000),
    "bigger.bin": "x".repeat(3000),
  });
  expect(() => listSource(root, { files: 10, bytes: 4000, depth: 3 })).toThrow(
    "the directory has 3 files and 5.0 kB; a source has at most 10 files and 4.0 kB. The largest: bigger.bin (3.0 kB), big.bin (2.0 kB), handler.js (0.0 kB)",
  );
});
