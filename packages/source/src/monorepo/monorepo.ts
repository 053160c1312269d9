import { lstatSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { GitError } from "../git-error.ts";
import { type Tree } from "./tree.ts";
import { workspaceMatcher } from "./workspace-patterns.ts";

/** A folder of a repository, with the npm packages next to it that it depends on. */
export interface Monorepo {
  /** Folder that all of it is in, from the repository's root; the following are relative to it. */
  root: string;
  folder: string;
  /** Whether the root's package.json names the folder a workspace: then the lock file is there. */
  isWorkspace: boolean;
  /** Folders of packages that the folder depends on, near or far, and that no registry has. */
  packages: string[];
}

type PackageJson = Record<string, unknown>;

const limits = { packages: 1000, packageJsonBytes: 1024 ** 2 };
const lockFiles = ["package-lock.json", "npm-shrinkwrap.json"];

/**
 * Finds what a folder's package.json depends on in its own repository: workspaces (npm's documentation, "Workspaces")
 * and `file:` folders and archives. They come to `destination`, with the package.json of every workspace, which the lock
 * file is about, and nothing else. Undefined for a folder that stands alone.
 */
export async function findMonorepo(
  folder: string,
  destination: string,
  tree: Tree,
): Promise<Monorepo | undefined> {
  if (folder === "") return undefined;
  const candidates = [...ancestorsOf(folder), folder].map((each) => inside(each, "package.json"));
  const manifests = await tree.present(candidates);
  if (!manifests.includes(`${folder}/package.json`)) return undefined;
  const checkOut = (names: readonly string[]) => tree.checkOut(names, destination);
  await checkOut(manifests);
  const read = (dir: string) => readPackageJson(join(destination, dir, "package.json"));
  const hasLocal = localPaths(read(folder), folder).length > 0;
  const parents = ancestorsOf(folder).filter((dir) => read(dir)["workspaces"] !== undefined);
  if (!hasLocal && parents.length === 0) return undefined;

  const names = await tree.list();
  const isAlone = lockFiles.some((name) => names.has(`${folder}/${name}`));
  const workspaces = isAlone ? undefined : workspacesAround(folder, parents, names, read);
  if (workspaces) manifests.push(...workspaces.folders.map((dir) => `${dir}/package.json`));
  if (workspaces)
    manifests.push(
      ...[...lockFiles, ".npmrc"]
        .map((name) => inside(workspaces.root, name))
        .filter((name) => names.has(name)),
    );
  await checkOut(manifests);

  const byName = new Map(workspaces?.folders.map((dir) => [read(dir)["name"], dir]));
  const near = new Set(workspaces?.folders);
  // A set that grows while it is walked is walked to its new end.
  const reached = new Set([folder]);
  for (const dir of reached) {
    const wanted = [
      ...Object.keys(dependenciesOf(read(dir), dir === folder)).map((name) => byName.get(name)),
      ...localPaths(read(dir), dir).filter((each) => names.has(inside(each, "package.json"))),
    ];
    for (const each of wanted) {
      if (each === undefined || reached.has(each)) continue;
      if (reached.size > limits.packages) throw tooMany();
      reached.add(each);
      if (near.has(each)) continue;
      manifests.push(inside(each, "package.json"));
      await checkOut(manifests);
    }
  }
  const archives = [...reached]
    .flatMap((dir) => localPaths(read(dir), dir))
    .filter((name) => /\.(?:tgz|tar\.gz|tar)$/i.test(name) && names.has(name))
    .filter((name) => !name.startsWith(`${folder}/`));
  if (!workspaces && reached.size === 1 && archives.length === 0) return undefined;
  const outer = [...reached].filter(
    (dir) => dir !== folder && ![...reached].some((one) => dir.startsWith(`${one}/`)),
  );
  await checkOut([...manifests, ...archives, ...outer.map((dir) => `${dir}/`)]);
  const root = workspaces?.root ?? commonFolder([folder, ...outer, ...archives]);
  const below = (dir: string) => (root === "" ? dir : dir.slice(root.length + 1));
  return {
    root,
    folder: below(folder),
    isWorkspace: workspaces !== undefined,
    packages: outer.map(below).sort(),
  };
}

/** The nearest folder above whose package.json has this one among its workspaces. */
function workspacesAround(
  folder: string,
  parents: readonly string[],
  names: ReadonlySet<string>,
  read: (dir: string) => PackageJson,
): { root: string; folders: string[] } | undefined {
  for (const root of parents) {
    const matches = workspaceMatcher(read(root)["workspaces"]);
    const below = (dir: string) => (root === "" ? dir : dir.slice(root.length + 1));
    if (!matches(below(folder))) continue;
    const prefix = root === "" ? "" : `${root}/`;
    const folders = [...names]
      .filter((name) => name.startsWith(prefix) && name.endsWith("/package.json"))
      .map((name) => posix.dirname(name))
      .filter((dir) => dir !== root && matches(below(dir)));
    if (folders.length > limits.packages) throw tooMany();
    return { root, folders };
  }
  return undefined;
}

const tooMany = () =>
  new GitError("unrecoverable", `more than ${limits.packages} packages in the repository`);

/** From the nearest to the repository's root, which is empty. */
function ancestorsOf(folder: string): string[] {
  const parts = folder.split("/");
  return parts.map((_, index) => parts.slice(0, parts.length - 1 - index).join("/"));
}

const inside = (dir: string, name: string) => (dir === "" ? name : `${dir}/${name}`);

function commonFolder(folders: readonly string[]): string {
  const [first = "", ...rest] = folders;
  return (
    ancestorsOf(first).find(
      (dir) => dir === "" || rest.every((one) => one.startsWith(`${dir}/`)),
    ) ?? ""
  );
}

function dependenciesOf(packageJson: PackageJson, withDev: boolean): Record<string, unknown> {
  const fields = ["dependencies", "optionalDependencies", "peerDependencies"];
  if (withDev) fields.push("devDependencies");
  return Object.assign({}, ...fields.map((field) => packageJson[field])) as Record<string, unknown>;
}

/** Folders and archives that a package.json names as dependencies, as far as their paths lead into the repository. */
function localPaths(packageJson: PackageJson, dir: string): string[] {
  return Object.values(dependenciesOf(packageJson, true)).flatMap((spec) => {
    const path = typeof spec === "string" ? /^(?:file|link):(.*)$/.exec(spec)?.[1] : undefined;
    if (path === undefined || path.startsWith("/")) return [];
    const found = posix.join(dir, path).replace(/\/$/, "");
    return found === "." || found === dir || /^\.\.(?:\/|$)/.test(found) ? [] : [found];
  });
}

/** Empty for anything that is not one: npm reports better what is wrong with it. */
function readPackageJson(file: string): PackageJson {
  try {
    const found = lstatSync(file);
    if (!found.isFile() || found.size > limits.packageJsonBytes) return {};
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    return typeof value === "object" && value !== null ? (value as PackageJson) : {};
  } catch {
    return {};
  }
}
