import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { type RegistryClient } from "../client/registry-client.ts";
import { unpackLayer } from "../unpack-layer.ts";
import { dependencyLayer, type DependencyRequest } from "./dependencies.ts";
import { readSource, type SourceFile } from "./function-source.ts";
import { runBuildScript } from "./npm.ts";
import { readPackageJson } from "./package-json.ts";

/** Whether package.json has a `build` script, whose results are part of the Function. */
export function hasBuildScript(files: readonly SourceFile[]): boolean {
  const scripts = readPackageJson(files)?.["scripts"] as Record<string, unknown> | undefined;
  const build = scripts?.["build"];
  return typeof build === "string" && build.trim() !== "";
}

/**
 * Runs the `build` script in a copy of the source, with the dependencies that only it needs, and
 * returns the files that are there then. Those dependencies are a layer in the cache too, so that
 * an edit of the code installs nothing; they are in no image of a Function.
 */
export async function builtSource(
  client: RegistryClient,
  files: readonly SourceFile[],
  functionDirectory: string,
  request: Omit<DependencyRequest, "installation"> &
    Partial<DependencyRequest> & {
      /** Files of the image that are not in the Function's directory. */
      beside: readonly SourceFile[];
    },
): Promise<SourceFile[]> {
  const { scratch, report, installation, beside } = request;
  const root = join(scratch, "root");
  const directory = join(root, functionDirectory);
  const own = files.map((file) => ({ ...file, path: `${functionDirectory}/${file.path}` }));
  for (const { path, content, mode } of [...own, ...beside]) {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    chmodSync(file, mode & 0o100 ? 0o755 : 0o644);
  }
  if (installation) {
    const { layer, source } = await dependencyLayer(client, { ...request, installation });
    const content = layer.body?.open() ?? client.getBlob(source.name, layer.descriptor);
    await unpackLayer(content instanceof Uint8Array ? Readable.from([content]) : content, root);
  }
  const home = join(scratch, "home");
  mkdirSync(home, { recursive: true });
  report("running the build script");
  await runBuildScript({ directory, home });
  return readSource(directory);
}
