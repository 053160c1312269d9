import { readdirSync } from "node:fs";
import {
  metadataDirectories,
  normalizedName,
  readMetadata,
  recordedFiles,
} from "../site-packages.ts";
import { NotForUv } from "./not-for-uv.ts";
import { type PackageSources } from "./package-sources.ts";

/** A version before a release: `2.0a1`, `2.0rc1`, `2.0.dev3` (packaging specification "Version specifiers"). */
const beforeRelease = /\d[-_.]?(?:a|b|c|rc|alpha|beta|pre|preview|dev)[-_.]?\d*/i;

/**
 * Throws `NotForUv` where pip might have installed something else than uv has. `log` is the output of uv's resolver
 * about its choices.
 */
export function assertAsPip(target: string, log: string, sources: PackageSources): void {
  const directories = metadataDirectories(target);
  const names = new Set(directories.map((directory) => nameOf(directory)));
  if (!isWithoutConflict(log, names))
    throw new NotForUv("the newest versions conflict, and pip decides which one to lower");
  for (const directory of directories) {
    const wanted = requirementsOf(target, directory);
    if (wanted.some(({ name, versions }) => names.has(name) && beforeRelease.test(versions)))
      throw new NotForUv(`${directory.replace(".dist-info", "")} requires a pre-release version`);
  }
  assertNothingTwice(target, directories);
  assertOnePlace(directories, sources);
}

/**
 * Whether the resolver took the first version it tried of each package. Where none excludes another, that is the newest one that
 * is allowed, for any resolver; else it depends on the order in which it looked.
 */
function isWithoutConflict(log: string, names: ReadonlySet<string>): boolean {
  return [...log.matchAll(/Tried \d+ versions: (.*)$/gm)].some(([, list = ""]) => {
    const tried = list.split(", ");
    return (
      tried.length === names.size &&
      tried.every((each) => {
        const [, name = ""] = /^(\S+) 1$/.exec(each.trim()) ?? [];
        return names.has(normalizedName(name));
      })
    );
  });
}

function requirementsOf(target: string, directory: string): { name: string; versions: string }[] {
  const [head = ""] = readMetadata(target, directory, "METADATA").split(/\r?\n\r?\n/);
  return [...head.matchAll(/^Requires-Dist:\s*([\w.-]+)([^;\r\n]*)/gim)].map(
    ([, name = "", versions = ""]) => ({ name: normalizedName(name), versions }),
  );
}

/** Where packages bring the same file, the last one counts: uv has no order. */
function assertNothingTwice(target: string, directories: readonly string[]): void {
  const seen = new Map<string, string>();
  for (const directory of directories) {
    const files = recordedFiles(target, directory);
    // Installers mend incomplete lists each in its own way.
    if (!files.some(({ path }) => path === `${directory}/METADATA`))
      throw new NotForUv(`${directory} has no list of its files`);
    for (const { path, rest } of files) {
      if (path.startsWith("bin/")) continue;
      const before = seen.get(path);
      if (before !== undefined && before !== rest)
        throw new NotForUv(`${path} is in two packages, whose order is pip's`);
      seen.set(path, rest);
    }
  }
}

/** Where the same version is both in a directory and elsewhere, pip and uv take different ones. */
function assertOnePlace(
  directories: readonly string[],
  { findLinks, noIndex }: PackageSources,
): void {
  if (findLinks.length === 0 || (noIndex && findLinks.length === 1)) return;
  const here = findLinks.flatMap((directory) => readdirSync(directory));
  for (const directory of directories) {
    const [, name = "", version = ""] = /^(.+)-([^-]+)\.dist-info$/.exec(directory) ?? [];
    const isOf = (file: string) => {
      const [, project = "", rest = ""] = /^(.+?)-(\d.*)$/.exec(file) ?? [];
      return normalizedName(project) === normalizedName(name) && rest.startsWith(version);
    };
    if (here.some(isOf))
      throw new NotForUv(`${name} ${version} is in find-links, and may be elsewhere too`);
  }
}

const nameOf = (directory: string): string =>
  normalizedName(directory.replace(/-[^-]+\.dist-info$/, ""));
