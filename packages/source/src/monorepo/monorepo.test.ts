/** What of a repository comes along with a folder, from a real server and from this machine. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { GitHttpServer } from "../testing/git-http-server.ts";
import { TestRepository } from "../testing/git-repository.ts";
import { fetchSource } from "../fetch-source.ts";
import { copyMonorepo } from "./folder-tree.ts";

const repository = new TestRepository();
const scratch = mkdtempSync(join(tmpdir(), "scratch-"));
let server: GitHttpServer;
beforeAll(async () => void (server = await GitHttpServer.start({ root: repository.root })));
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  repository[Symbol.dispose]();
  rmSync(scratch, { recursive: true });
});

const json = (value: unknown) => JSON.stringify(value);
const root = json({ workspaces: ["apps/*", "packages/*"] });
const shared = (dependencies = {}) => json({ name: "@x/shared", dependencies });

const rows: {
  what: string;
  folder?: string;
  files: Record<string, string>;
  found: object | undefined;
  there?: string[];
}[] = [
  {
    what: "what a workspace depends on, near and far",
    files: {
      "package.json": root,
      "package-lock.json": "{}",
      "apps/fn/package.json": json({ dependencies: { "@x/shared": "*", ms: "2" } }),
      "packages/shared/package.json": shared({ "@x/deep": "*", fn: "*" }),
      "packages/shared/src/index.js": "",
      "packages/deep/package.json": json({ name: "@x/deep" }),
      "packages/other/package.json": json({ name: "@x/other" }),
      "packages/other/large.bin": "large",
    },
    found: {
      root: "",
      folder: "apps/fn",
      isWorkspace: true,
      packages: ["packages/deep", "packages/shared"],
    },
    there: [
      "apps/fn/package.json",
      "package-lock.json",
      "package.json",
      "packages/deep/package.json",
      "packages/other/package.json",
      "packages/shared/package.json",
      "packages/shared/src/index.js",
    ],
  },
  {
    what: "a lock file at a root that is not the repository's",
    folder: "js/apps/fn",
    files: {
      "package.json": "{}",
      "js/package.json": root,
      "js/package-lock.json": "{}",
      "js/apps/fn/package.json": "{}",
    },
    found: { root: "js", folder: "apps/fn", isWorkspace: true, packages: [] },
  },
  {
    what: "folders by their path, also those of folders",
    files: {
      "apps/fn/package.json": json({ dependencies: { shared: "file:../../lib/shared" } }),
      "lib/shared/package.json": shared({ deep: "file:../[deep] *" }),
      "lib/[deep] */package.json": "{}",
      "lib/d/package.json": "{}",
    },
    found: {
      root: "",
      folder: "apps/fn",
      isWorkspace: false,
      packages: ["lib/[deep] *", "lib/shared"],
    },
    there: ["apps/fn/package.json", "lib/[deep] */package.json", "lib/shared/package.json"],
  },
  {
    what: "archives by their path",
    folder: "js/fn",
    files: {
      "js/fn/package.json": json({ dependencies: { a: "file:../a-1.0.0.tgz", b: "file:b.tgz" } }),
      "js/fn/b.tgz": "",
      "js/a-1.0.0.tgz": "",
      "js/other.tgz": "",
    },
    found: { root: "js", folder: "fn", isWorkspace: false, packages: [] },
    there: ["js/a-1.0.0.tgz", "js/fn/package.json"],
  },
  {
    what: "nothing for a folder with a lock file of its own",
    files: {
      "package.json": root,
      "apps/fn/package.json": "{}",
      "apps/fn/package-lock.json": "{}",
    },
    found: undefined,
  },
  {
    what: "nothing of what is outside of the repository",
    files: {
      "apps/fn/package.json": json({ dependencies: { x: "file:../../../x", y: "file:/etc" } }),
    },
    found: undefined,
  },
  {
    what: "nothing where a package.json is not one",
    files: { "package.json": "[", "apps/fn/package.json": "nonsense" },
    found: undefined,
  },
];

test.each(rows)("of a commit: $what", async ({ what, folder = "apps/fn", files, found, there }) => {
  const commit = repository.commitTree(
    treeOf(files),
    what.replaceAll(" ", "-").replaceAll(",", ""),
  );
  const destination = mkdtempSync(join(scratch, "source-"));
  const monorepo = join(destination, "../monorepo");
  rmSync(monorepo, { recursive: true, force: true });
  const request = { url: `${server.origin}/shop.git`, reference: commit, commit, baseDir: folder };
  const fetched = await fetchSource({
    ...request,
    destination,
    monorepo,
    scratch,
    allowed: ["127.0.0.1"],
  });
  expect(fetched.monorepo).toEqual(found);
  if (there) expect(filesBelow(monorepo)).toEqual(there);
});

test.each(rows)("on this machine: $what", async ({ folder = "apps/fn", files, found, there }) => {
  const place = mkdtempSync(join(scratch, "folder-"));
  const working = join(place, "repository");
  write(working, files);
  // Nothing of these belongs to it.
  write(place, { "package.json": root, ".git": "gitdir: nowhere" });
  write(working, {
    ".git/config": "",
    "node_modules/x/package.json": "{}",
    [`${folder}/a.js`]: "",
  });
  const monorepo = join(place, "monorepo");
  expect(await copyMonorepo(join(working, folder), monorepo)).toEqual(found);
  if (there) expect(filesBelow(monorepo)).toEqual(there);
});

test("on this machine, without Git: from the outermost package.json on", async () => {
  const place = mkdtempSync(join(scratch, "folder-"));
  write(place, {
    "package.json": root,
    "apps/fn/package.json": json({ dependencies: { "@x/shared": "*" } }),
    "packages/shared/package.json": shared(),
    "packages/shared/node_modules/left/index.js": "",
  });
  const monorepo = join(place, "monorepo");
  const found = await copyMonorepo(join(place, "apps/fn"), monorepo);
  expect(found).toMatchObject({ root: "", folder: "apps/fn", packages: ["packages/shared"] });
  expect(filesBelow(monorepo)).toEqual([
    "apps/fn/package.json",
    "package.json",
    "packages/shared/package.json",
  ]);
});

function filesBelow(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
}

function write(directory: string, files: Record<string, string>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), content);
  }
}

/** Of these files alone. */
function treeOf(files: Record<string, string>): string {
  const index = join(repository.root, "tree-index");
  repository.git(["read-tree", "--empty"], { index });
  const lines = Object.entries(files).map(
    ([path, content]) => `100644 ${repository.blob(content)}\t${path}\0`,
  );
  repository.git(["update-index", "--add", "-z", "--index-info"], { index, input: lines.join("") });
  return repository.git(["write-tree"], { index });
}
