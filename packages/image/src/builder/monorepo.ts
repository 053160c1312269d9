import { join, posix } from "node:path";
import { readSource, type SourceFile } from "./function-source.ts";
import { placesBelow, type PlaceOf } from "./module-tree.ts";

/**
 * Npm packages that a Function's source depends on and that come from the same repository. In the image the
 * root's `node_modules` is next to the Function's folder, and the packages are in `workspaces` there, so that all find
 * each other as they do in the repository.
 */
export interface Monorepo {
  /** Directory with the packages, and with the package.json of every workspace. */
  directory: string;
  /** The Function's folder, relative to it. */
  folder: string;
  /** Whether npm installs in `directory`, as the package.json there names the folder a workspace. */
  isWorkspace: boolean;
  /** Folders of the packages, relative to the directory. */
  packages: readonly string[];
}

/** What a fetcher has left in `source.json`; undefined for anything that does not name folders inside. */
export function parseMonorepo(value: unknown, parent: string): Monorepo | undefined {
  const { root, folder, isWorkspace, packages } = (value ?? {}) as Record<string, unknown>;
  const isFolder = (path: unknown): path is string =>
    typeof path === "string" && !posix.isAbsolute(path) && !path.split("/").includes("..");
  if (!isFolder(root) || !isFolder(folder) || folder === "" || !Array.isArray(packages))
    return undefined;
  if (!packages.every((each) => isFolder(each) && each !== "")) return undefined;
  return {
    directory: join(parent, root),
    folder,
    isWorkspace: isWorkspace === true,
    packages: packages as string[],
  };
}

/** All files of the packages, as paths in the image. */
export function packageFiles(
  { directory, packages }: Monorepo,
  functionDirectory: string,
): SourceFile[] {
  return packages.flatMap((each) =>
    readSource(join(directory, each)).map((file) => ({
      ...file,
      path: `${placeOfPackage(each, functionDirectory)}/${file.path}`,
    })),
  );
}

/** Directories that npm may have made below where it installed, each with its place in the image. */
export function moduleDirectories(
  { folder, packages }: Monorepo,
  installed: string,
  functionDirectory: string,
): { directory: string; prefix: string }[] {
  const parent = posix.dirname(functionDirectory);
  const each = (path: string, place: string) => ({
    directory: join(installed, path, "node_modules"),
    prefix: `${place}/node_modules`,
  });
  return [
    each("", parent),
    each(folder, functionDirectory),
    ...packages.map((one) => each(one, placeOfPackage(one, functionDirectory))),
  ];
}

/** Of links that npm made: those to workspaces that this Function does not need are left out. */
export function placesInImage(
  { folder, packages }: Monorepo,
  installed: string,
  functionDirectory: string,
): PlaceOf {
  const parent = posix.dirname(functionDirectory);
  const known = placesBelow([
    [join(installed, folder), functionDirectory],
    ...packages
      .toSorted((a, b) => b.length - a.length)
      .map((one) => [join(installed, one), placeOfPackage(one, functionDirectory)] as const),
    [join(installed, "node_modules"), `${parent}/node_modules`],
  ]);
  const all = placesBelow([[installed, ""]]);
  return (file) => known(file) ?? (all(file) === undefined ? undefined : null);
}

function placeOfPackage(folder: string, functionDirectory: string): string {
  return `${posix.dirname(functionDirectory)}/workspaces/${folder}`;
}
