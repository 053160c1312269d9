import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, expect, test } from "vitest";
import { openProject } from "../project/project.ts";
import { repositoryAround } from "./repository-around.ts";

let home = "";
afterEach(() => rmSync(home, { recursive: true, force: true }));

async function sentFor(folder: string, files: Record<string, string>): Promise<string[]> {
  home = mkdtempSync(path.join(tmpdir(), "spry-around-"));
  for (const [name, text] of Object.entries(files)) {
    const place = path.join(home, "repository", name);
    mkdirSync(path.dirname(place), { recursive: true });
    writeFileSync(place, text);
  }
  const project = openProject(path.join(home, "repository", folder));
  const sent = await repositoryAround(project, path.join(home, "scratch"));
  return sent.map((file) => file.path.replace(".spry-repository/", "")).sort();
}

const monorepo = {
  "package.json": `{ "workspaces": ["apps/*", "packages/*"] }`,
  "package-lock.json": `{ "lockfileVersion": 3, "packages": {} }`,
  "apps/fn/package.json": `{ "name": "fn", "dependencies": { "@mono/shared": "*" } }`,
  "apps/fn/handler.js": "",
  "packages/shared/package.json": `{ "name": "@mono/shared" }`,
  "packages/shared/index.js": "",
  "packages/shared/.env": "TOKEN=secret",
  "packages/shared/.gitignore": "*.log\n",
  "packages/shared/debug.log": "",
  "packages/other/package.json": `{ "name": "other" }`,
  "packages/other/index.js": "",
};

test("a workspace brings the root's lock file and the packages that it uses, without secrets and ignored files", async () => {
  expect(await sentFor("apps/fn", monorepo)).toEqual([
    "files/apps/fn/package.json",
    "files/package-lock.json",
    "files/package.json",
    "files/packages/other/package.json",
    "files/packages/shared/.gitignore",
    "files/packages/shared/index.js",
    "files/packages/shared/package.json",
    "source.json",
  ]);
});

test("a directory that uses nothing around it brings nothing", async () => {
  const alone = { "package.json": "{}", "fn/package.json": "{}", "fn/handler.js": "" };
  expect(await sentFor("fn", alone)).toEqual([]);
});
