/** Which runtimes the platform has made itself: only these may wait for a Function outside of any Pod. */
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { pullImage, type RegistryClient } from "@spry/image";
import { type Logger, messageOf } from "@spry/kube";
import { runtimeDigest } from "@spry/machine";

export class ShippedRuntimes {
  readonly #scratch: string;
  readonly #log: Logger;
  #source: { registry: RegistryClient; images: readonly string[] } | undefined;
  #digests: Promise<ReadonlySet<string>> | undefined;

  /** `scratch`: a directory for this alone, in which the images are unpacked, one at a time. */
  constructor(scratch: string, log: Logger) {
    this.#scratch = scratch;
    this.#log = log;
  }

  /** The names of the runtimes' images. Until they are known, nothing is shipped. */
  use(registry: RegistryClient, images: readonly string[]): void {
    this.#source = { registry, images };
  }

  /** Whether one of the images has exactly this runtime. They are read when this is asked for the first time. */
  async has(digest: string): Promise<boolean> {
    if (!this.#source) return false;
    this.#digests ??= this.#read(this.#source);
    return (await this.#digests).has(digest);
  }

  async #read({
    registry,
    images,
  }: {
    registry: RegistryClient;
    images: readonly string[];
  }): Promise<ReadonlySet<string>> {
    const digests = new Set<string>();
    // What a platform that was killed has left.
    await rm(this.#scratch, { recursive: true, force: true });
    for (const [index, image] of images.entries()) {
      const rootDir = path.join(this.#scratch, String(index));
      try {
        await mkdir(this.#scratch, { recursive: true, mode: 0o700 });
        const { config, digest } = await pullImage(registry, image, rootDir);
        const runtime = await runtimeDigest({ digest, rootDir, config: config.config ?? {} });
        if (runtime) digests.add(runtime);
      } catch (error) {
        // Its Functions start as they would without warm processes.
        this.#log.warn({ image, error: messageOf(error) }, "reading a runtime's image failed");
      } finally {
        await rm(rootDir, { recursive: true, force: true });
      }
    }
    await rm(this.#scratch, { recursive: true, force: true });
    return digests;
  }
}
