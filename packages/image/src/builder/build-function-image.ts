import { createHash } from "node:crypto";
import { join } from "node:path";
import { assembleImage } from "../assemble-image.ts";
import { type RegistryClient } from "../client/registry-client.ts";
import { formatImageName, parseImageName } from "../image-name.ts";
import { createLayer, type Layer } from "../layer.ts";
import { type LayerSource, pushImage } from "../push-image.ts";
import { dependencyLayer } from "./dependencies.ts";
import { readSource, sourceDigest, type SourceFile } from "./function-source.ts";
import { hasDependencies, readPackageJson } from "./package-json.ts";

export interface BuildOptions {
  client: RegistryClient;
  /** Directory with the Function's files. */
  source: string;
  /** `nodejs24`, say. */
  runtime: string;
  /** Runtime image to build on. */
  base: string;
  /** Name with tag to push to. */
  destination: string;
  /** Repository for dependency layers; by default beside the destination. */
  dependencyCache?: string | undefined;
  /** What the files must be, see `sourceDigest`; anything else fails with nothing pushed. */
  sourceDigest?: string | undefined;
  npmConfig?: string | undefined;
  /** A directory of this build alone. */
  scratch: string;
  /** Gets progress, a line each. */
  report?: (line: string) => void;
}

const functionDirectory = "usr/src/app/function";

/**
 * Builds the image of a Node.js Function and pushes it: `[base][dependencies][source]`. Returns the
 * image's name by digest. A `UserError` is the author's to put right, any other error is not.
 */
export async function buildFunctionImage(
  options: BuildOptions,
): Promise<{ image: string; sentBytes: number }> {
  const { client, report = () => {} } = options;
  const files = readSource(options.source);
  const actual = sourceDigest(files);
  if (options.sourceDigest !== undefined && options.sourceDigest !== actual)
    throw new Error(`reading the source: it is ${actual} by now, not ${options.sourceDigest}`);
  const packageJson = readPackageJson(files);

  const [base, source] = await Promise.all([
    client.resolveImage(options.base),
    sourceLayer(files, options.scratch),
  ]);
  const layers: Layer[] = [source];
  const sources: LayerSource[] = [
    { name: base.name, digests: new Set(base.manifest.layers.map((layer) => layer.digest)) },
  ];
  if (packageJson && hasDependencies(packageJson)) {
    const { os, architecture } = base.config;
    const dependencies = await dependencyLayer(client, {
      files,
      packageJson,
      runtime: options.runtime,
      platform: { os, architecture },
      cache: options.dependencyCache ?? defaultCache(options.destination),
      npmConfig: options.npmConfig,
      scratch: options.scratch,
      prefix: `${functionDirectory}/node_modules`,
      report,
    });
    layers.unshift(dependencies.layer);
    sources.push(dependencies.source);
  }

  const target = parseImageName(options.destination);
  const annotations = { "org.opencontainers.image.base.digest": base.digest };
  const image = assembleImage({ base, layers, annotations });
  const onSend = (layer: Layer) => {
    if (layer === source)
      report(`pushing source layer ${(layer.descriptor.size / 1024).toFixed(1)} KiB`);
  };
  const { digest, sentBytes } = await pushImage(client, image, target, { sources, onSend });
  const { host, repository } = target;
  return { image: formatImageName({ host, repository, digest }), sentBytes };
}

/**
 * The author's files. An `.npmrc` may hold secrets, and beside a package.json of nothing but blanks
 * Node.js refuses to load modules: both stay out.
 */
function sourceLayer(files: readonly SourceFile[], scratch: string): Promise<Layer> {
  const isBlank = ({ content }: SourceFile) => content.toString().trim() === "";
  const kept = files.filter((file) => {
    const name = file.path.slice(file.path.lastIndexOf("/") + 1);
    return name !== ".npmrc" && !(name === "package.json" && isBlank(file));
  });
  const size = kept.reduce((sum, { content }) => sum + content.length, 0);
  const entries = kept.map((file) => ({ ...file, path: `${functionDirectory}/${file.path}` }));
  const inMemory = size < 4 * 1024 * 1024;
  return createLayer(entries, inMemory ? {} : { scratchFile: join(scratch, "source.tar.gz") });
}

function defaultCache(destination: string): string {
  const { host, repository } = parseImageName(destination);
  const suffix = createHash("sha256").update(repository).digest("hex").slice(0, 8);
  return `${host}/spry-cache/${suffix}`;
}
