import { chmodSync, constants, copyFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type RegistryClient } from "../client/registry-client.ts";
import { type LayerFile } from "../layer.ts";
import { unpackLayer } from "../unpack-layer.ts";
import { type DependencyLayer } from "./dependencies.ts";
import { readSource, type SourceFile } from "./function-source.ts";
import { isDirectoryBelow } from "./module-tree.ts";
import { runBuildScript } from "./npm.ts";
import { readPackageJson } from "./package-json.ts";
import { UserError } from "./user-error.ts";

/** Whether package.json has a `build` script, whose results are part of the Function. */
export function hasBuildScript(files: readonly SourceFile[]): boolean {
  const scripts = readPackageJson(files)?.["scripts"] as Record<string, unknown> | undefined;
  const build = scripts?.["build"];
  return typeof build === "string" && build.trim() !== "";
}

/** Where the build script runs: the image's root as it will be, in the directory of a build. */
const rootIn = (directory: string) => join(directory, "root");

/** Puts the dependencies of a layer where the build script will look for them. */
export async function unpackDependencies(
  client: RegistryClient,
  { layer, source }: DependencyLayer,
  directory: string,
): Promise<void> {
  mkdirSync(rootIn(directory), { recursive: true });
  await unpackLayer(client.getBlob(source.name, layer.descriptor), rootIn(directory));
}

/**
 * Runs the `build` script in a copy of the source. `files` are all that there is besides dependencies that have
 * been unpacked, by their paths in the image.
 */
export async function runBuild(
  files: readonly LayerFile[],
  functionDirectory: string,
  directory: string,
  onLine: (line: string) => void,
): Promise<void> {
  for (const entry of files) putFile(entry, join(rootIn(directory), entry.path));
  const home = join(directory, "home");
  mkdirSync(home, { recursive: true });
  await runBuildScript({ directory: join(rootIn(directory), functionDirectory), home, onLine });
}

/** The Function's files as the build script has left them. */
export function builtSource(functionDirectory: string, directory: string): SourceFile[] {
  const built = join(rootIn(directory), functionDirectory);
  if (!isDirectoryBelow(directory, built))
    throw new UserError("running the build script: it has removed the Function's directory");
  return readSource(built, { takesAbsoluteLinks: true });
}

function putFile(entry: LayerFile, file: string): void {
  mkdirSync("folder" in entry ? file : dirname(file), { recursive: true });
  if ("folder" in entry) return;
  if ("link" in entry) return symlinkSync(entry.link, file);
  if ("file" in entry) copyFileSync(entry.file, file, constants.COPYFILE_FICLONE);
  else writeFileSync(file, entry.content);
  chmodSync(file, (entry.mode ?? 0o644) & 0o100 ? 0o755 : 0o644);
}
