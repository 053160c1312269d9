/** The same trees and rules for Git and for us. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { rounds } from "@spry/test-kit";
import { expect, test } from "vitest";
import { listPresent } from "../files.ts";

type Tree = Record<string, string>;

function write(root: string, tree: Tree): void {
  for (const [name, content] of Object.entries(tree)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    writeFileSync(path.join(root, name), content, "latin1");
  }
}

function repository(): string {
  const root = mkdtempSync(path.join(tmpdir(), "ignore-"));
  execFileSync("git", ["init", "-q", root]);
  return root;
}

/** Those of `files` that Git ignores. */
function ignoredByGit(root: string, files: readonly string[]): string[] {
  const args = ["-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z", "--stdin"];
  try {
    return execFileSync("git", args, { cwd: root, input: files.join("\0"), stdio: "pipe" })
      .toString()
      .split("\0")
      .filter((name) => name !== "");
  } catch (error) {
    // Its exit code when none is ignored.
    if ((error as { status?: number }).status === 1) return [];
    throw error;
  }
}

/** A generator of numbers from 0 to 1, the same for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const names = [
  "a",
  "b",
  "Icon",
  "icon",
  "a.js",
  "b.log",
  "B.LOG",
  "ab",
  "a b",
  "x]y",
  "[z]",
  "ö.txt",
  "-",
  "\\w",
  "a\tb",
  "!n",
  "#c",
  "tr ",
];
const pieces = [
  "a",
  "b",
  "*",
  "**",
  "?",
  "/",
  "/",
  ".",
  "js",
  "log",
  "[ab]",
  "[!a]",
  "[a-z]",
  "[[:alpha:]]",
  "[[:upper:]]",
  "[]x]",
  "[a",
  "\\*",
  "\\",
  "icon",
  "Icon",
  "!",
  "#",
  " ",
  "\\ ",
  "**/",
  "/**",
  "x]y",
  "-",
  "\u00C3\u00B6",
  ".txt",
  "[^b]",
  "[--a]",
  "[[:foo:]]",
  "[a-",
];

function randomRules(random: () => number): string {
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  const lines = Array.from({ length: 1 + Math.floor(random() * 6) }, () => {
    if (random() < 0.3)
      return (
        (random() < 0.3 ? "!" : "") +
        pick(names.filter((name) => !name.includes("ö"))) +
        (random() < 0.4 ? "/" : "")
      );
    const count = 1 + Math.floor(random() * 5);
    return (
      (random() < 0.25 ? "!" : "") + Array.from({ length: count }, () => pick(pieces)).join("")
    );
  });
  const bom = random() < 0.1 ? "\u00EF\u00BB\u00BF" : "";
  return bom + lines.join(random() < 0.1 ? "\r\n" : "\n") + (random() < 0.5 ? "\n" : "");
}

function randomTree(random: () => number): { files: string[]; rules: Tree } {
  const files = new Set<string>();
  const folders = new Set([""]);
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  for (let each = 0; each < 25; each++) {
    const folder = pick([...folders]);
    const name = pick(names);
    const place = folder + name;
    if (files.has(place) || folders.has(`${place}/`)) continue;
    if (random() < 0.35 && folder.split("/").length < 4) folders.add(`${place}/`);
    else files.add(place);
  }
  const rules: Tree = {};
  for (const folder of folders)
    if (folder === "" || random() < 0.2) rules[`${folder}.gitignore`] = randomRules(random);
  if (random() < 0.3) rules[".git/info/exclude"] = randomRules(random);
  return { files: [...files], rules };
}

test("generated rules leave out what Git ignores", () => {
  const root = repository();
  const all = rounds({ quick: 60, full: 1000 });
  for (let seed = 1; seed <= all; seed++) {
    const random = randomFrom(seed);
    const { files, rules } = randomTree(random);
    const tree = {
      ".git/info/exclude": "",
      ...Object.fromEntries(files.map((file) => [file, ""])),
    };
    const bytes = Object.fromEntries(Object.entries(rules));
    write(root, { ...tree, ...bytes });
    const present = [...files, ...Object.keys(rules).filter((name) => !name.startsWith(".git/"))];
    const ignored = new Set(ignoredByGit(root, present));
    const expected = present.filter((file) => !ignored.has(file)).sort();
    const listed = listPresent(root).files.map((file) => file.path);
    expect({ seed, rules, listed: listed.sort() }).toEqual({ seed, rules, listed: expected });
    // Of a directory in it, unless Git ignores that as a whole.
    const [folder] = files
      .filter((file) => file.includes("/"))
      .map((file) => file.split("/")[0] ?? "");
    if (folder !== undefined && ignoredByGit(root, [`${folder}/`]).length === 0) {
      const below = expected.filter((file) => file.startsWith(`${folder}/`));
      const found = listPresent(path.join(root, folder)).files.map(
        (file) => `${folder}/${file.path}`,
      );
      expect({ seed, folder, rules, found: found.sort() }).toEqual({
        seed,
        folder,
        rules,
        found: below,
      });
    }
    for (const name of [...files, ...Object.keys(rules)])
      rmSync(path.join(root, name.startsWith(".git/") ? name : (name.split("/")[0] ?? "")), {
        recursive: true,
        force: true,
      });
  }
});
