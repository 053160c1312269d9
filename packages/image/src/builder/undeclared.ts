/** Packages that a Node.js Function uses without declaring them, and that the build adds to those it declares. */
import { existsSync } from "node:fs";
import { join, posix } from "node:path";
import { type Declaring, packageSpec, undeclaredPackages } from "@spry/function";
import { type SourceFile } from "./function-source.ts";
import { type NpmRun } from "./npm.ts";
import { UserError } from "./user-error.ts";

/** What is looked at of a source, from its top on: beyond that, what is not declared is not found. */
const limits = { files: 2000, size: 16 * 1024 * 1024 };

const isCode = /\.[cm]?[jt]s$/;
/** Runs at a desk, with packages for development. */
const isTest = /(?:^|\/)(?:tests?|__tests__)\/|\.(?:test|spec)\.[cm]?[jt]s$/;

/**
 * Names of the packages to add, in order. A package.json speaks for its folder and all below. Whether one is there anyway, as
 * a workspace or because another package brings it, is seen when the declared ones are installed.
 */
export function undeclaredIn(files: readonly SourceFile[]): string[] {
  let manifests: Map<string, Declaring> | undefined;
  const above = (path: string): Declaring[] => {
    manifests ??= manifestsIn(files);
    const found: Declaring[] = [];
    for (let folder = posix.dirname(path); ; folder = posix.dirname(folder)) {
      found.push(manifests.get(folder) ?? {});
      if (folder === ".") return found;
    }
  };
  const names = codeIn(files).flatMap(({ path, content }) =>
    // The names are ASCII; this way of reading it costs least.
    undeclaredPackages(content.toString("latin1"), () => above(path)),
  );
  return [...new Set(names)].sort();
}

/**
 * Adds those that are missing by now: lock files and package.json stay as they are. Throws as `install` does, with a
 * longer message.
 */
export async function addUndeclared(
  run: NpmRun,
  install: (specs: readonly string[]) => Promise<void>,
): Promise<void> {
  const { directory, workspace = "", undeclared = [], report = () => {} } = run;
  const isHere = (name: string) =>
    ["", workspace].some((folder) =>
      existsSync(join(directory, folder, "node_modules", name, "package.json")),
    );
  const missing = undeclared.filter((name) => !isHere(name));
  if (missing.length === 0) return;
  try {
    await install(missing.map(packageSpec));
  } catch (cause) {
    const names = missing.join(" and ");
    const message = `adding ${names}, which the source uses and package.json does not declare (name a registry that has it in an .npmrc, declare another version, or take it out of the source)`;
    if (cause instanceof UserError) throw new UserError(message, { cause });
    throw new Error(message, { cause });
  }
  for (const name of missing)
    report(
      `${name} is not among the Function's dependencies: added ${packageSpec(name)}, as in Kyma's images; declare it to choose a version`,
    );
}

function codeIn(files: readonly SourceFile[]): SourceFile[] {
  const depth = (path: string) => path.split("/").length;
  const code = files
    .filter(({ path }) => isCode.test(path) && !isTest.test(path))
    .sort((a, b) => depth(a.path) - depth(b.path) || (a.path < b.path ? -1 : 1));
  let room = limits.size;
  return code.slice(0, limits.files).filter(({ content }) => {
    if (content.length > room) return false;
    room -= content.length;
    return true;
  });
}

/** By their folders. */
function manifestsIn(files: readonly SourceFile[]): Map<string, Declaring> {
  return new Map(
    files
      .filter(({ path }) => posix.basename(path) === "package.json")
      .map((file) => [posix.dirname(file.path), readManifest(file)]),
  );
}

/** Empty for what is none: whether that matters is for others to say. */
function readManifest({ content }: SourceFile): Declaring {
  try {
    return (JSON.parse(content.toString("utf8").replace(/^\uFEFF/, "")) ?? {}) as Declaring;
  } catch {
    return {};
  }
}
