import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import {
  type ContainerConfig,
  parseImageName,
  pullImage,
  RegistryClient,
  type RegistryEndpoint,
} from "@spry/image";
import { type Clock, type Logger } from "@spry/kube";
import { type LocalImage } from "../sandbox/sandbox.ts";

export interface ImageStoreOptions {
  /** Holds `<hex of the digest>/{rootfs,config.json}` and `names.json`. */
  dir: string;
  /** Registry host in an image name → where to pull. */
  mirrors: Record<string, RegistryEndpoint>;
  clock: Clock;
  log: Logger;
}

interface StoredImage extends LocalImage {
  size: number;
  lastUsed: number;
}

const unusedForMs = 24 * 3600 * 1000;

/** The images on this machine: each unpacked once, by digest, and shared by all Pods. */
export class ImageStore {
  readonly #options: ImageStoreOptions;
  readonly #client: RegistryClient;
  readonly #images = new Map<string, StoredImage>();
  /** Image name → digest, as last pulled. */
  readonly #names = new Map<string, string>();
  readonly #pulls = new Map<string, Promise<LocalImage>>();

  constructor(options: ImageStoreOptions) {
    this.#options = options;
    this.#client = new RegistryClient({ resolve: (host) => options.mirrors[host] });
  }

  /** Reads what is there; what a crash left half done is removed. */
  async open(): Promise<void> {
    const { dir, clock } = this.#options;
    await mkdir(dir, { recursive: true, mode: 0o755 });
    for (const name of await readdir(dir)) {
      if (!/^[0-9a-f]{64}$/.test(name)) {
        if (name.includes(".partial-"))
          await rm(path.join(dir, name), { recursive: true, force: true });
        continue;
      }
      const stored = readJson(path.join(dir, name, "config.json")) as
        | { config: ContainerConfig; size: number }
        | undefined;
      if (!stored) await rm(path.join(dir, name), { recursive: true, force: true });
      else this.#add(`sha256:${name}`, stored.config, stored.size, clock.now());
    }
    const names =
      (readJson(path.join(dir, "names.json")) as Record<string, string> | undefined) ?? {};
    for (const [name, digest] of Object.entries(names))
      if (this.#images.has(digest)) this.#names.set(name, digest);
  }

  /** The image, if it is on this machine. */
  find(name: string): LocalImage | undefined {
    const digest = /@(sha256:[0-9a-f]{64})$/.exec(name)?.[1] ?? this.#names.get(name);
    const image = digest === undefined ? undefined : this.#images.get(digest);
    if (image) image.lastUsed = this.#options.clock.now();
    return image;
  }

  /** Asks the registry what the name means, and fetches what is missing. One pull per name at a time. */
  pull(name: string): Promise<LocalImage> {
    const running = this.#pulls.get(name) ?? this.#pull(name);
    this.#pulls.set(name, running);
    return running.finally(() => this.#pulls.delete(name));
  }

  async #pull(name: string): Promise<LocalImage> {
    // A name by digest means the same for ever.
    const known = name.includes("@") ? this.find(name) : undefined;
    if (known) return known;
    const resolved = await this.#client.resolveImage(parseImageName(name));
    const image =
      this.#images.get(resolved.digest) ??
      (await this.#unpack(resolved.digest, resolved.name, resolved.config.config ?? {}));
    this.#names.set(name, resolved.digest);
    // An index's digest names its platform's manifest as well.
    const asked = /@(sha256:[0-9a-f]{64})$/.exec(name)?.[1];
    if (asked && asked !== resolved.digest) this.#images.set(asked, image);
    this.#saveNames();
    return image;
  }

  async #unpack(
    digest: string,
    name: Parameters<typeof pullImage>[1],
    config: ContainerConfig,
  ): Promise<StoredImage> {
    const dir = path.join(this.#options.dir, digest.slice("sha256:".length));
    const partial = `${dir}.partial-${randomBytes(4).toString("hex")}`;
    try {
      await mkdir(partial, { mode: 0o755 });
      const { size } = await pullImage(this.#client, name, path.join(partial, "rootfs"));
      writeFileSync(path.join(partial, "config.json"), JSON.stringify({ config, size }));
      if (!existsSync(dir)) await rename(partial, dir);
      return this.#add(digest, config, size, this.#options.clock.now());
    } finally {
      await rm(partial, { recursive: true, force: true });
    }
  }

  #add(digest: string, config: ContainerConfig, size: number, lastUsed: number): StoredImage {
    const rootDir = path.join(this.#options.dir, digest.slice("sha256:".length), "rootfs");
    const image = { digest, rootDir, config, size, lastUsed };
    this.#images.set(digest, image);
    return image;
  }

  #saveNames(): void {
    const file = path.join(this.#options.dir, "names.json");
    writeFileSync(`${file}.new`, JSON.stringify(Object.fromEntries(this.#names)));
    renameSync(`${file}.new`, file);
  }

  /** Removes images that no Pod uses and that have not been used for a day. */
  async removeUnused(inUse: ReadonlySet<string>): Promise<void> {
    const { clock, log } = this.#options;
    for (const [digest, image] of this.#images) {
      if (inUse.has(image.digest) || clock.now() - image.lastUsed < unusedForMs) continue;
      this.#images.delete(digest);
      for (const [name, target] of this.#names) if (target === digest) this.#names.delete(name);
      log.info({ digest, size: image.size }, "removing unused image");
      await rm(path.dirname(image.rootDir), { recursive: true, force: true });
    }
    this.#saveNames();
  }

  /** For the Node's status, largest first. */
  list(): { names: string[]; sizeBytes: number }[] {
    return [...new Set(this.#images.values())]
      .map(({ digest, size }) => ({
        names: [...this.#names].flatMap(([name, target]) => (target === digest ? name : [])),
        sizeBytes: size,
      }))
      .filter(({ names }) => names.length > 0)
      .sort((a, b) => b.sizeBytes - a.sizeBytes)
      .slice(0, 50);
  }
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as unknown;
  } catch {
    return undefined;
  }
}
