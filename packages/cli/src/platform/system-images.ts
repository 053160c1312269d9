/**
 * The images that every build starts from: one per runtime and the builder. They are made from this
 * checkout, once per content: their tag is the digest of the sources, and what the registry already
 * has costs one request.
 */
import { mkdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import { sourceFetcherEntry } from "@spry/controller";
import { runtimes } from "@spry/function";
import {
  assembleImage,
  builderEntry,
  type ContainerConfig,
  createLayer,
  parseImageName,
  pushImage,
  type RegistryClient,
} from "@spry/image";
import { entry as runtimeEntry } from "@spry/runtime-nodejs";
import { sourceDigest } from "./source-digest.ts";

export interface SystemImages {
  /** By runtime name: `<pull address>/spry/nodejs24:<digest of the sources>`. */
  runtimes: Record<string, string>;
  builder: string;
}

export async function ensureSystemImages(
  registry: RegistryClient,
  options: { pullAddress: string; scratch: string },
): Promise<SystemImages> {
  const { pullAddress, scratch } = options;
  const runtimeBundle = new Bundle(runtimeEntry, path.join(scratch, "server.cjs"));
  const builderBundle = new Bundle(builderEntry, path.join(scratch, "builder.cjs"));
  const fetcherBundle = new Bundle(
    sourceFetcherEntry,
    path.join(scratch, "fetcher.cjs"),
    path.dirname(sourceFetcherEntry),
  );
  const bundles = [runtimeBundle, builderBundle, fetcherBundle];
  const images: SystemImages = {
    runtimes: {},
    builder: `${pullAddress}/spry/builder:${builderBundle.digest}-${fetcherBundle.digest}`,
  };
  const wanted = runtimes.filter((runtime) => runtime.language === "nodejs");
  await mkdir(scratch, { recursive: true });
  try {
    await Promise.all([
      ...wanted.map(async ({ name, interpreter }) => {
        const image = `${pullAddress}/spry/${name}:${runtimeBundle.digest}`;
        images.runtimes[name] = image;
        const programs = { "usr/src/app/server.cjs": runtimeBundle };
        const config = { WorkingDir: "/usr/src/app/function" };
        await ensureImage(registry, image, interpreter, programs, config);
      }),
      ensureImage(registry, images.builder, "node@24", {
        "opt/spry/builder.cjs": builderBundle,
        "opt/spry/fetcher.cjs": fetcherBundle,
      }),
    ]);
  } finally {
    // One process of esbuild serves all bundles: it may end only when none is being made any more.
    if (bundles.some((bundle) => bundle.isMade)) await (await import("esbuild")).stop();
    await rm(scratch, { recursive: true, force: true });
  }
  return images;
}

/** An image with programs in it, the first of which it starts, for the interpreter that its label names. */
async function ensureImage(
  registry: RegistryClient,
  image: string,
  interpreter: string,
  programs: Record<string, Bundle>,
  config: ContainerConfig = {},
): Promise<void> {
  const name = parseImageName(image);
  if (await registry.headManifest(name)) return;
  const files = Object.entries(programs).map(async ([file, bundle]) => {
    return { path: file, content: await bundle.content() };
  });
  const layer = await createLayer(await Promise.all(files));
  const assembled = assembleImage({
    layers: [layer],
    config: {
      Entrypoint: ["node", `/${Object.keys(programs)[0]}`],
      User: "1000:1000",
      Labels: { "io.spry.interpreter": interpreter },
      ...config,
    },
  });
  await pushImage(registry, assembled, name);
}

/** A program bundled to one CommonJS file, which is what starts fastest; made only when it is read. */
class Bundle {
  readonly digest: string;
  readonly #entry: string;
  readonly #file: string;
  #content: Promise<Buffer> | undefined;

  /** `sources` is the directory with all that goes into it. */
  constructor(entry: string, file: string, sources = path.dirname(path.dirname(entry))) {
    this.#entry = entry;
    this.#file = file;
    this.digest = sourceDigest(sources);
  }

  get isMade(): boolean {
    return this.#content !== undefined;
  }

  content(): Promise<Buffer> {
    return (this.#content ??= this.#build());
  }

  async #build(): Promise<Buffer> {
    const { build } = await import("esbuild");
    try {
      await build({
        entryPoints: [this.#entry],
        outfile: this.#file,
        bundle: true,
        platform: "node",
        target: "node22",
        format: "cjs",
        legalComments: "none",
        logLevel: "silent",
      });
      return await readFile(this.#file);
    } catch (error) {
      throw new Error(`bundling ${this.#entry}`, { cause: error });
    }
  }
}
