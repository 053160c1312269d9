import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assembleImage } from "../assemble-image.ts";
import { type RegistryClient } from "../client/registry-client.ts";
import { isNotFound } from "../client/registry-error.ts";
import { type ImageName, parseImageName } from "../image-name.ts";
import { createLayer, type Layer } from "../layer.ts";
import { type Platform } from "../manifest.ts";
import { type LayerSource, pushImage } from "../push-image.ts";
import { type SourceFile } from "./function-source.ts";
import { readModules } from "./module-tree.ts";
import { runNpm } from "./npm.ts";
import { dependencyInput, type PackageJson } from "./package-json.ts";

export interface DependencyRequest {
  files: readonly SourceFile[];
  packageJson: PackageJson;
  /** `nodejs24`, say. */
  runtime: string;
  platform: Platform;
  /** Repository of dependency layers, one tag for each set of dependencies. */
  cache: string;
  /** `.npmrc` with registries and credentials, where there is one. */
  npmConfig?: string | undefined;
  scratch: string;
  /** Where the tree goes in the image. */
  prefix: string;
  report: (line: string) => void;
}

const installTimeoutMs = 15 * 60_000;
const lockFiles = ["package-lock.json", "npm-shrinkwrap.json"];
/** All that an installer gets to see of a source. */
const installerFiles = ["package.json", ".npmrc", ...lockFiles];

/**
 * The layer with a Function's dependencies. It is named by all that determines it, and looked up
 * under that name before anything is installed: only new dependencies cost an installation.
 */
export async function dependencyLayer(
  client: RegistryClient,
  request: DependencyRequest,
): Promise<{ layer: Layer; source: LayerSource }> {
  const name = parseImageName(`${request.cache}:${dependencyKey(request)}`);
  const layer = (await findLayer(client, name)) ?? (await installLayer(client, name, request));
  return { layer, source: { name, digests: new Set([layer.descriptor.digest]) } };
}

async function findLayer(client: RegistryClient, name: ImageName): Promise<Layer | undefined> {
  try {
    const { manifest, config } = await client.resolveImage(name);
    const [descriptor] = manifest.layers;
    const [diffId] = config.rootfs.diff_ids;
    return descriptor && diffId ? { descriptor, diffId } : undefined;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

async function installLayer(
  client: RegistryClient,
  name: ImageName,
  request: DependencyRequest,
): Promise<Layer> {
  const { scratch, report } = request;
  report("installing dependencies");
  const directory = await install(request);
  const modules = join(directory, "node_modules");
  const { files, size } = existsSync(modules)
    ? readModules(modules, request.prefix)
    : { files: [], size: 0 };
  report(`packing ${files.length} files of dependencies, ${(size / 1024 / 1024).toFixed(1)} MiB`);
  const layer = await createLayer(files, { scratchFile: join(scratch, "dependencies.tar.gz") });
  const onSend = () =>
    report(`pushing dependency layer ${(layer.descriptor.size / 1024 / 1024).toFixed(1)} MiB`);
  await pushImage(client, assembleImage({ layers: [layer], platform: request.platform }), name, {
    onSend,
  });
  return layer;
}

async function install({ files, scratch, npmConfig }: DependencyRequest): Promise<string> {
  const directory = join(scratch, "install");
  const home = join(scratch, "home");
  mkdirSync(directory, { recursive: true });
  mkdirSync(home, { recursive: true });
  const inputs = files.filter(({ path }) => installerFiles.includes(path));
  for (const { path, content } of inputs) writeFileSync(join(directory, path), content);
  const run = { directory, home, userConfig: npmConfig, timeoutMs: installTimeoutMs };
  const isLocked = inputs.some(({ path }) => lockFiles.includes(path));
  await runNpm(isLocked ? "ci" : "install", run);
  return directory;
}

function dependencyKey(request: DependencyRequest): string {
  const { files, packageJson, runtime, platform, npmConfig, prefix } = request;
  const contentsOf = (names: string[]) =>
    files.filter(({ path }) => names.includes(path)).map(({ content }) => content.toString());
  const configs = contentsOf([".npmrc"]);
  if (npmConfig !== undefined) configs.push(readFileSync(npmConfig, "utf8"));
  const input = [
    sortKeys(dependencyInput(packageJson)),
    contentsOf(lockFiles),
    runtime,
    platform,
    configs.map(registryLines),
    prefix,
  ];
  return createHash("sha256").update(JSON.stringify(input)).digest("hex").slice(0, 40);
}

/** Which registries an `.npmrc` names: who may read them is not part of what comes from them. */
function registryLines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.replace(/\s/g, "").replace(/(:\/\/)[^/@]+@/, "$1"))
    .filter((line) => /^(@[^:]+:)?registry=/.test(line))
    .sort();
}

function sortKeys(value: unknown): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, child]) => [key, sortKeys(child)]));
}
