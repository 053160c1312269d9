/**
 * The images that every build starts from: one per runtime and the builder. They are made from this
 * checkout, once per content: their tag is the digest of the sources, and what the registry already
 * has costs one request.
 */
import { mkdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import { runtimes } from "@spry/function";
import { assembleImage, builderEntry, type RegistryClient } from "@spry/image";
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
  const images: SystemImages = {
    runtimes: {},
    builder: `${pullAddress}/spry/builder:${builderBundle.digest}`,
  };
  const wanted = Object.values(runtimes).filter((runtime) => runtime.language === "nodejs");
  await mkdir(scratch, { recursive: true });
  try {
    const work = wanted.map(async (runtime) => {
      const name = `${pullAddress}/spry/${runtime.name}:${runtimeBundle.digest}`;
      images.runtimes[runtime.name] = name;
      if (await registry.hasManifest(name)) return;
      await assembleImage(registry, {
        destination: name,
        layers: [[{ path: "usr/src/app/server.cjs", content: await runtimeBundle.content() }]],
        config: {
          Entrypoint: ["node", "/usr/src/app/server.cjs"],
          WorkingDir: "/usr/src/app/function",
          User: "1000:1000",
          Labels: { "io.spry.interpreter": runtime.interpreter },
        },
      });
    });
    work.push(
      (async () => {
        if (await registry.hasManifest(images.builder)) return;
        await assembleImage(registry, {
          destination: images.builder,
          layers: [[{ path: "opt/spry/builder.cjs", content: await builderBundle.content() }]],
          config: {
            Entrypoint: ["node", "/opt/spry/builder.cjs"],
            User: "1000:1000",
            Labels: { "io.spry.interpreter": "node@24" },
          },
        });
      })(),
    );
    await Promise.all(work);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return images;
}

/** A program bundled to one CommonJS file, which is what starts fastest; made only when it is read. */
class Bundle {
  readonly digest: string;
  readonly #entry: string;
  readonly #file: string;
  #content: Promise<Buffer> | undefined;

  constructor(entry: string, file: string) {
    this.#entry = entry;
    this.#file = file;
    this.digest = sourceDigest(path.dirname(path.dirname(entry)));
  }

  content(): Promise<Buffer> {
    return (this.#content ??= this.#build());
  }

  async #build(): Promise<Buffer> {
    const { build, stop } = await import("esbuild");
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
    } finally {
      await stop();
    }
  }
}
