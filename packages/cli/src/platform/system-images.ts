/**
 * The images that every build starts from: one per runtime and the builder. They are made from this
 * checkout, once per content: their tag is the digest of the sources, and what this platform has put into
 * the registry before costs one request. What others have put there under such a name is replaced.
 */
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { type Runtime, runtimes } from "@spry/function";
import {
  assembleImage,
  builderEntry,
  type ContainerConfig,
  createLayer,
  type LayerFile,
  parseImageName,
  pushImage,
  type RegistryClient,
  stepScript,
} from "@spry/image";
import { type Logger, messageOf } from "@spry/kube";
import { sourceFetcherEntry } from "@spry/source";
import {
  compiledPythonRuntime,
  pythonEntrypoint,
  pythonRuntime,
  pythonRuntimeDigest,
} from "./python-runtime.ts";
import { Bundle } from "./bundle.ts";
import { KnownImages } from "./known-images.ts";
import { nodeEntrypoint, NodeRuntime } from "./node-runtime.ts";

export interface SystemImages {
  /** By runtime name: `<pull address>/spry/nodejs24:<digest of the sources>`. */
  runtimes: Record<string, string>;
  builder: string;
  /** Of runtimes that have their own. */
  builders: Record<string, string>;
}

export interface MadeImages extends SystemImages {
  /** What each of these names stands for. */
  digests: ReadonlyMap<string, string>;
}

export async function ensureSystemImages(
  registry: RegistryClient,
  options: {
    pullAddress: string;
    scratch: string;
    /** A file of the platform's own, in which it is remembered what has been made. */
    knownFile: string;
    log: Logger;
  },
): Promise<MadeImages> {
  const { pullAddress, scratch, log } = options;
  const store = { registry, known: new KnownImages(options.knownFile), log };
  const nodeRuntime = new NodeRuntime();
  const builderBundle = new Bundle(builderEntry, path.join(scratch, "builder.cjs"));
  const fetcherBundle = new Bundle(
    sourceFetcherEntry,
    path.join(scratch, "fetcher.cjs"),
    path.dirname(sourceFetcherEntry),
  );
  const bundles = [nodeRuntime, builderBundle, fetcherBundle];
  const builderTag = `${builderBundle.digest}-${fetcherBundle.digest}`;
  const images: SystemImages = {
    runtimes: {},
    builder: `${pullAddress}/spry/builder:${builderTag}`,
    builders: {},
  };
  const ofLanguage = (name: Runtime["language"]) =>
    runtimes.filter(({ language }) => language === name);
  const builderPrograms = async () => [
    { path: "opt/spry/builder.sh", content: stepScript },
    { path: "opt/spry/builder.cjs", content: await builderBundle.content() },
    { path: "opt/spry/fetcher.cjs", content: await fetcherBundle.content() },
  ];
  await mkdir(scratch, { recursive: true });
  try {
    await Promise.all([
      ...ofLanguage("nodejs").map(async ({ name, interpreter }) => {
        const image = `${pullAddress}/spry/${name}`;
        images.runtimes[name] = await ensureNodeImage(store, image, interpreter, nodeRuntime);
        await tagLatest(registry, images.runtimes[name]);
      }),
      ensureImage(store, images.builder, "node@24", builderConfig, builderPrograms),
      ...ofLanguage("python").map(async ({ name, interpreter }) => {
        const image = await ensurePythonImage(store, { ...options, name, interpreter });
        images.runtimes[name] = image;
        await tagLatest(registry, image);
        // Packages are installed by the pip of the version that they are for.
        const builder = `${pullAddress}/spry/builder-${name}:${builderTag}`;
        images.builders[name] = builder;
        const interpreters = `node@24,${interpreter}`;
        await ensureImage(store, builder, interpreters, builderConfig, builderPrograms);
      }),
    ]);
  } finally {
    // One process of esbuild serves all bundles: it may end only when none is being made any more.
    if (bundles.some((bundle) => bundle.isMade)) await (await import("esbuild")).stop();
    await rm(scratch, { recursive: true, force: true });
  }
  const { runtimes: ofRuntimes, builder, builders } = images;
  const all = [builder, ...Object.values(ofRuntimes), ...Object.values(builders)];
  return { ...images, digests: store.known.keep(all) };
}

/** Where the images are, and which of them are this platform's. */
interface ImageStore {
  registry: RegistryClient;
  known: KnownImages;
  log: Logger;
}

async function isOurs({ registry, known }: ImageStore, image: string): Promise<boolean> {
  const digest = known.digestOf(image);
  return digest !== undefined && (await registry.headManifest(parseImageName(image))) === digest;
}

const builderConfig = {
  Entrypoint: ["node", "/opt/spry/builder.cjs"],
  Labels: { "io.spry.task": "true" },
};
const inFunction = { WorkingDir: "/usr/src/app/function" };

/** With bytecode for the Node.js that runs this program. Others are fetched when a Function needs them: they compile at each start. */
async function ensureNodeImage(
  store: ImageStore,
  name: string,
  interpreter: string,
  runtime: NodeRuntime,
): Promise<string> {
  const image = `${name}:${runtime.digest}`;
  const config = { Entrypoint: nodeEntrypoint, ...inFunction };
  const isOwn = interpreter === `node@${process.versions.node.split(".")[0]}`;
  const compiled = `${image}-${process.versions.node}`;
  if (isOwn && (await isOurs(store, compiled))) return compiled;
  const files = isOwn ? await compiledOrTold(runtime, store.log) : undefined;
  const made = files ? compiled : image;
  await ensureImage(store, made, interpreter, config, async () => files ?? runtime.files());
  return made;
}

async function compiledOrTold(runtime: NodeRuntime, log: Logger): Promise<LayerFile[] | undefined> {
  try {
    return await runtime.compiledFiles(process.execPath);
  } catch (error) {
    log.warn(
      { error: messageOf(error) },
      "compiling the Node.js runtime failed: Functions start from its source, which takes longer",
    );
    return undefined;
  }
}

/** With bytecode as soon as this machine has that Python: a later start makes up for what an earlier one could not. */
async function ensurePythonImage(
  store: ImageStore,
  options: { pullAddress: string; scratch: string; name: string; interpreter: string },
): Promise<string> {
  const { name, interpreter, scratch } = options;
  const image = `${options.pullAddress}/spry/${name}:${pythonRuntimeDigest()}`;
  const config = { Entrypoint: pythonEntrypoint, ...inFunction };
  const compiled = `${image}-compiled`;
  if (await isOurs(store, compiled)) return compiled;
  const version = interpreter.replace("python@", "");
  const files = await compiledPythonRuntime(version, path.join(scratch, name));
  const made = files ? compiled : image;
  await ensureImage(store, made, interpreter, config, () =>
    Promise.resolve(files ?? pythonRuntime()),
  );
  return made;
}

/** An image of these files, for the interpreters that its label names; they are read only if the image does not exist yet. */
async function ensureImage(
  store: ImageStore,
  image: string,
  interpreter: string,
  config: ContainerConfig,
  files: () => Promise<LayerFile[]>,
): Promise<void> {
  if (await isOurs(store, image)) return;
  const layer = await createLayer(await files());
  const labels = { ...config.Labels, "io.spry.interpreter": interpreter };
  const assembled = assembleImage({
    layers: [layer],
    config: { User: "1000:1000", ...config, Labels: labels },
  });
  const { digest } = await pushImage(store.registry, assembled, parseImageName(image));
  store.known.add(image, digest);
}

/** Of the images that are made here (OCI image specification 1.1, "Image Manifest"). */
const manifestType = "application/vnd.oci.image.manifest.v1+json";

/** Gives the image the tag `latest` too, so that people's own Pods and Jobs can name it. */
async function tagLatest(registry: RegistryClient, image: string): Promise<void> {
  const name = parseImageName(image);
  const latest = { ...name, tag: "latest" };
  const digest = await registry.headManifest(name);
  if (digest === (await registry.headManifest(latest))) return;
  const { bytes } = await registry.getManifest(name);
  await registry.putManifest(latest, bytes, manifestType);
}
