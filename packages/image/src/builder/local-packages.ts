/** Packages for npm that a source has with it: folders and archives, named by `file:`. */
import { posix } from "node:path";
import { type SourceFile } from "./function-source.ts";
import { dependencyInput, type PackageJson, readPackageJson } from "./package-json.ts";

/** The package.json of every folder of the source, where the one at its top names some as packages (`workspaces`, `file:`). */
export function localManifests(
  files: readonly SourceFile[],
  packageJson: PackageJson,
): SourceFile[] {
  const isLocal = localSpecs(packageJson).length > 0;
  if (!isLocal && packageJson["workspaces"] === undefined) return [];
  return files.filter(
    ({ path }) => path !== "package.json" && posix.basename(path) === "package.json",
  );
}

/** Those of the files that one of the package.json among `inputs` names as an archive to install. */
export function localArchives(
  inputs: readonly SourceFile[],
  files: readonly SourceFile[],
): SourceFile[] {
  const wanted = new Set(
    inputs
      .filter(({ path }) => posix.basename(path) === "package.json")
      .flatMap((file) => {
        const packageJson = readPackageJson([{ ...file, path: "package.json" }]) ?? {};
        return localSpecs(packageJson)
          .filter((path) => /\.(?:tgz|tar\.gz|tar)$/i.test(path))
          .map((path) => posix.join(posix.dirname(file.path), path));
      }),
  );
  return files.filter(({ path }) => wanted.has(path));
}

/** Paths, relative to the package. */
function localSpecs(packageJson: PackageJson): string[] {
  return Object.values(dependencyInput(packageJson))
    .flatMap((field): unknown[] => Object.values(field ?? {}))
    .flatMap((spec) => {
      const path = typeof spec === "string" ? /^(?:file|link):(.+)$/.exec(spec)?.[1] : undefined;
      return path === undefined ? [] : [path];
    });
}
