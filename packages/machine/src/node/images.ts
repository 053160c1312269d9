import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { mkdir, readdir, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import {
  type ContainerConfig,
  type EarlierVersion,
  type ImageName,
  parseImageName,
  type PlacedFile,
  RegistryClient,
  type RegistryEndpoint,
  type ResolvedImage,
} from "@spry/image";
import {
  type Clock,
  type Logger,
  messageOf,
  OutboundGuard,
  type PullCredentials,
} from "@spry/kube";
import { removeTree } from "../sandbox/remove-tree.ts";
import { type LocalImage } from "../sandbox/sandbox.ts";
import { firstDamagedFile, firstDamagedOfMany, hasManyFiles, writeFileList } from "./file-list.ts";
import { pullFailure } from "./pull-failure.ts";
import {
  mayUse,
  type PullRecord,
  readPullRecord,
  withUser,
  writePullRecord,
} from "./pull-records.ts";
import { requireLayers, type UnpackedImage, unpackImageLayers } from "./image-layers.ts";
import { type ImageUses, spareImages, superfluousImages } from "./image-retention.ts";

export interface ImageStoreOptions {
  /** Holds `<hex of the digest>/{rootfs,config.json}`, `base-<hex>/` (shared layers) and `names.json`. */
  dir: string;
  /** Registry host in an image name → where to pull, and who the node is there for Pods without a login. */
  mirrors: Record<string, RegistryEndpoint>;
  /**
   * Which addresses images are pulled from, unless a mirror has them or a puller has its own guard. Default: all but loopback, the
   * machine's own, and those that are never called.
   */
  guard?: OutboundGuard;
  /** Image name → the digest that it stands for, whatever it stood for when it was last pulled. */
  pinned?: ReadonlyMap<string, string> | undefined;
  /** Whether files keep the owners that an image gives them; see `unpackLayer`. Default: they do not. */
  keepsOwners?: (() => boolean) | undefined;
  clock: Clock;
  log: Logger;
}

/** What `config.json` says. */
interface ImageRecord extends Omit<UnpackedImage, "placed"> {
  config: ContainerConfig;
  /** Of the registry that it is from. */
  host?: string;
  /** See `unpackLayer`. */
  keepsOwners?: boolean;
}

interface StoredImage extends LocalImage, ImageRecord {
  config: ContainerConfig;
  lastUsed: number;
  /** Undefined: from a version that did not ask. It must not be used before a registry has been asked. */
  pulledBy: PullRecord | undefined;
}

/** For whom an image is pulled. */
export interface Puller {
  /** Uid of the Pod's namespace. */
  namespaceUid: string;
  /** By the Pod's Secrets. */
  credentials?: PullCredentials | undefined;
  /** In place of the store's own. */
  guard?: OutboundGuard | undefined;
}

/** Next to `config.json`: see file-list.ts. */
const listName = "files.json";
/** Images whose files are remembered: 10,000 files are some 2 MB. */
const maxRemembered = 4;
/** Of a failure, for the operator. */
const maxLoggedChars = 2_000;

/** The images on this machine: each unpacked once, by digest, and shared by all Pods. */
export class ImageStore {
  readonly #options: ImageStoreOptions;
  readonly #guard: OutboundGuard;
  readonly #images = new Map<string, StoredImage>();
  /** Image name → digest, as last pulled. */
  readonly #names = new Map<string, string>();
  /** How often names have changed, and what of that is on disk. */
  readonly #changes = { made: 0, saved: 0 };
  #saving: Promise<void> = Promise.resolve();
  readonly #pulls = new Map<string, Promise<LocalImage>>();
  /** Of images with many files that were unpacked lately: what they consist of. */
  readonly #content = new Map<string, ReadonlyMap<string, PlacedFile>>();
  /** Images whose files have all been seen since the start. */
  readonly #whole = new WeakSet<StoredImage>();
  readonly #checks = new Map<StoredImage, Promise<void>>();

  constructor(options: ImageStoreOptions) {
    this.#options = options;
    this.#guard = options.guard ?? new OutboundGuard({ allowPrivate: true });
  }

  /** Reads what is there; what a crash left half done is removed. */
  async open(): Promise<void> {
    const { dir, clock } = this.#options;
    const keepsOwners = this.#keepsOwners;
    await mkdir(dir, { recursive: true, mode: 0o755 });
    for (const name of await readdir(dir)) {
      if (!/^[0-9a-f]{64}$/.test(name)) {
        if (name.includes(".partial-")) await this.#discard(path.join(dir, name));
        continue;
      }
      const stored = readJson(path.join(dir, name, "config.json")) as ImageRecord | undefined;
      // A sandbox that runs images where they are must not let Pods write what an image lets them write.
      const isFit = stored && (keepsOwners || !stored.keepsOwners);
      if (!isFit) await this.#discard(path.join(dir, name));
      else this.#add(`sha256:${name}`, stored, clock.now());
    }
    const names =
      (readJson(path.join(dir, "names.json")) as Record<string, string> | undefined) ?? {};
    for (const [name, digest] of Object.entries(names))
      if (this.#images.has(digest)) this.#names.set(name, digest);
  }

  /** What cannot be removed now is tried again at the next start, which it must not prevent. */
  async #discard(dir: string): Promise<void> {
    await removeTree(dir).catch((error: unknown) =>
      this.#options.log.warn({ dir, error: messageOf(error) }, "removing an image failed"),
    );
  }

  get #keepsOwners(): boolean {
    return this.#options.keepsOwners?.() ?? false;
  }

  #named(name: string): StoredImage | undefined {
    const digest = /@(sha256:[0-9a-f]{64})$/.exec(name)?.[1];
    const last = this.#options.pinned?.get(name) ?? this.#names.get(name);
    return this.#images.get(digest ?? "") ?? this.#images.get(last ?? "");
  }

  /** The image, if it is on this machine. One with many files has to be looked at by `check` once after a start. */
  find(name: string): LocalImage | undefined {
    const image = this.#named(name);
    if (!image || !this.#isWhole(image)) return undefined;
    image.lastUsed = this.#options.clock.now();
    return image;
  }

  /** Undefined when `find` can answer at once. Otherwise resolves when it can, and others go on meanwhile. */
  check(name: string): Promise<void> | undefined {
    const image = this.#named(name);
    if (!image || this.#whole.has(image) || !hasManyFiles(listOf(image))) return undefined;
    const known = this.#checks.get(image);
    if (known) return known;
    const check = this.#look(image).finally(() => this.#checks.delete(image));
    this.#checks.set(image, check);
    return check;
  }

  async #look(image: StoredImage): Promise<void> {
    const file = await firstDamagedOfMany(image.rootDir, listOf(image));
    if (file === undefined) this.#whole.add(image);
    else this.#setAside(image, file);
  }

  /** Looked at once after a start. */
  #isWhole(image: StoredImage): boolean {
    if (this.#whole.has(image)) return true;
    if (hasManyFiles(listOf(image))) return false;
    const file = firstDamagedFile(image.rootDir, listOf(image));
    if (file === undefined) this.#whole.add(image);
    else this.#setAside(image, file);
    return file === undefined;
  }

  /** A damaged image makes room for another, which is fetched like one that was never here. */
  #setAside(image: StoredImage, file: string): void {
    const { digest, rootDir, base } = image;
    const own = path.dirname(rootDir);
    this.#options.log.error({ digest, file }, "an unpacked image is damaged, fetching it again");
    for (const [name, each] of this.#images) if (each === image) this.#images.delete(name);
    // Files of its shared layers are the same ones.
    for (const dir of [own, ...(base ? [path.join(this.#options.dir, base)] : [])]) {
      const aside = `${dir}.partial-${randomBytes(4).toString("hex")}`;
      if (existsSync(dir)) renameSync(dir, aside);
      void this.#discard(aside);
    }
  }

  /** Whether Pods of the namespace may use an image that is here: a registry has given it to one of them, or gives it to all. */
  mayUse({ digest }: LocalImage, namespaceUid: string): boolean {
    return mayUse(this.#images.get(digest)?.pulledBy, namespaceUid);
  }

  /**
   * Asks the registry what the name means, and fetches what is missing. One pull per name and namespace at a time. That the
   * registry gives it is remembered next to the image.
   */
  pull(name: string, puller: Puller): Promise<LocalImage> {
    const key = `${puller.namespaceUid} ${name}`;
    const running = this.#pulls.get(key) ?? this.#pull(name, puller);
    this.#pulls.set(key, running);
    return running.finally(() => this.#pulls.delete(key));
  }

  async #pull(text: string, puller: Puller): Promise<LocalImage> {
    const name = parseImageName(text);
    if (this.#options.mirrors[name.host]) return this.#pullNamed(text, name, puller);
    try {
      return await this.#pullNamed(text, name, puller);
    } catch (error) {
      const failure = messageOf(error).slice(0, maxLoggedChars);
      this.#options.log.warn({ image: text, error: failure }, "pulling an image failed");
      throw pullFailure(name, error);
    }
  }

  async #pullNamed(
    text: string,
    name: ImageName,
    { namespaceUid, credentials, guard = this.#guard }: Puller,
  ): Promise<LocalImage> {
    const login = credentials?.find(name.host, name.repository);
    const mirror = this.#options.mirrors[name.host];
    const client = new RegistryClient({
      // Where the Pod has a login, the node's own is not for it.
      resolve: () => (mirror && login ? { url: mirror.url, ...login } : mirror),
      credentials: () => login,
      // The platform's own is on loopback, and leads nowhere else.
      guard: mirror ? undefined : guard,
    });
    const user = login ? namespaceUid : undefined;
    const resolved = await client.resolveImage(name);
    await this.check(`${name.repository}@${resolved.digest}`);
    let image = this.#images.get(resolved.digest);
    if (!image) image = await this.#unpack(resolved, client, withUser(undefined, user));
    else {
      // The platform's own serves only what was pushed there in full. Any other can claim to have any digest: it has to send
      // the content; the one that the image is from has to give the layers to this user, too.
      if (!mirror && image.host !== name.host) await readLayers(resolved, client);
      else if (!mirror) await requireLayers(client, resolved);
      this.#addUser(image, user);
    }
    return this.#name(text, resolved.digest, image);
  }

  #addUser(image: StoredImage, namespaceUid: string | undefined): void {
    const record = withUser(image.pulledBy, namespaceUid);
    if (record !== image.pulledBy) writePullRecord(path.dirname(image.rootDir), record);
    image.pulledBy = record;
  }

  async #name(name: string, digest: string, image: StoredImage): Promise<LocalImage> {
    this.#names.set(name, digest);
    // An index's digest names its platform's manifest as well.
    const asked = /@(sha256:[0-9a-f]{64})$/.exec(name)?.[1];
    if (asked && asked !== digest) this.#images.set(asked, image);
    const saved = this.#saveNames();
    // After a restart, an image is found by its digest as well: its Pod, which a client may be waiting for, can start.
    if (asked !== digest) await saved;
    return image;
  }

  async #unpack(
    resolved: ResolvedImage,
    client: RegistryClient,
    pulledBy: PullRecord,
  ): Promise<StoredImage> {
    const { dir: images, clock } = this.#options;
    const dir = path.join(images, hexOf(resolved.digest));
    const partial = `${dir}.partial-${randomBytes(4).toString("hex")}`;
    const config = resolved.config.config ?? {};
    try {
      // Sandboxes make what is in it visible to Pods.
      await mkdir(partial, { mode: 0o700 });
      const rootDir = path.join(partial, "rootfs");
      const isChecked = this.#options.mirrors[resolved.name.host] !== undefined;
      const keepsOwners = this.#keepsOwners;
      const unpacked = await unpackImageLayers(client, resolved, {
        dir: rootDir,
        sharedDir: images,
        isChecked,
        keepsOwners,
        earlier: this.#earlierOf(resolved.name),
      });
      const { size, base, placed } = unpacked;
      const { host } = resolved.name;
      const about: ImageRecord = { config, host, size, keepsOwners, ...(base && { base }) };
      const before = base && path.join(images, base);
      await writeFileList(rootDir, path.join(partial, listName), { placed, before });
      writeFileSync(path.join(partial, "config.json"), JSON.stringify(about));
      writePullRecord(partial, pulledBy);
      // Two names of one image may be pulled at the same time: then theirs is as good.
      await rename(partial, dir).catch((error: unknown) => {
        if (!existsSync(dir)) throw error;
      });
      const already = this.#images.get(resolved.digest);
      const image = already ?? this.#add(resolved.digest, about, clock.now());
      this.#whole.add(image);
      if (placed) this.#remember(resolved.digest, placed.files);
      for (const user of pulledBy.everyone ? [undefined] : pulledBy.namespaces)
        this.#addUser(image, user);
      return image;
    } finally {
      await this.#discard(partial);
    }
  }

  /** The image that was pulled last from the same repository, with what is known of it. */
  #earlierOf(name: ResolvedImage["name"]): EarlierVersion | undefined {
    const image = this.#newestOf(name);
    return image && { dir: image.rootDir, content: this.#content.get(image.digest) };
  }

  #remember(digest: string, files: ReadonlyMap<string, PlacedFile>): void {
    this.#content.set(digest, files);
    for (const known of this.#content.keys())
      if (this.#content.size > maxRemembered) this.#content.delete(known);
  }

  /** The image that was pulled last from the same repository. */
  #newestOf({ host, repository }: ResolvedImage["name"]): StoredImage | undefined {
    const ofSame = [...this.#names].filter(([text]) => {
      const name = parseImageName(text);
      return name.host === host && name.repository === repository;
    });
    return this.#images.get(ofSame.at(-1)?.[1] ?? "");
  }

  #add(digest: string, about: ImageRecord, lastUsed: number): StoredImage {
    const rootDir = path.join(this.#options.dir, hexOf(digest), "rootfs");
    const pulledBy = readPullRecord(path.dirname(rootDir));
    const image = { digest, rootDir, lastUsed, pulledBy, ...about };
    this.#images.set(digest, image);
    return image;
  }

  /** Not at once: on a busy disk, a file is replaced only after others have been written. Throws when it cannot be done. */
  #saveNames(): Promise<void> {
    const change = ++this.#changes.made;
    const saved = this.#saving.then(() =>
      this.#changes.saved < change ? this.#writeNames() : undefined,
    );
    this.#saving = saved.catch((error: unknown) =>
      this.#options.log.warn({ error: messageOf(error) }, "saving the names of images failed"),
    );
    return saved;
  }

  async #writeNames(): Promise<void> {
    const { made } = this.#changes;
    const file = path.join(this.#options.dir, "names.json");
    // The names of all namespaces' images.
    const text = JSON.stringify(Object.fromEntries(this.#names));
    await writeFile(`${file}.new`, text, { mode: 0o600 });
    await rename(`${file}.new`, file);
    this.#changes.saved = made;
  }

  /** Removes images that are not worth the room they take on a disk of this size. */
  async removeUnused(uses: ImageUses, diskBytes: number): Promise<void> {
    const now = this.#options.clock.now();
    await this.#remove(superfluousImages(this.#all(), uses, { now, diskBytes }));
  }

  /**
   * Removes images that no Pod uses, those first that nothing names, the longest unused first, until so many bytes have
   * gone. Spares those used in the last `minAgeMs`. Returns the bytes of the images that went.
   */
  async free(bytes: number, uses: ImageUses, minAgeMs: number): Promise<number> {
    let freed = 0;
    const going: StoredImage[] = [];
    const now = this.#options.clock.now();
    for (const image of spareImages(this.#all(), uses, { now, minAgeMs })) {
      if (freed >= bytes) break;
      going.push(image);
      freed += image.size;
    }
    await this.#remove(going);
    return freed;
  }

  #all(): StoredImage[] {
    return [...new Set(this.#images.values())];
  }

  async #remove(images: readonly StoredImage[]): Promise<void> {
    const going = new Set(images);
    // Forgotten first, so that no Pod gets an image that is about to be removed.
    for (const [digest, image] of this.#images) if (going.has(image)) this.#images.delete(digest);
    for (const [name, digest] of this.#names)
      if (!this.#images.has(digest)) this.#names.delete(name);
    for (const { digest, size, rootDir } of images) {
      this.#options.log.info({ digest, size }, "removing unused image");
      await this.#discard(path.dirname(rootDir));
    }
    // A full disk may have had no room for them before; what names nothing is left out at the next start.
    await this.#saveNames().catch(() => {});
    await this.#removeUnusedBases();
  }

  /** What a name means at present, without counting as a use. */
  digestOf(name: string): string | undefined {
    const digest = name.split("@")[1] ?? this.#names.get(name) ?? "";
    return this.#images.get(digest)?.digest;
  }

  async #removeUnusedBases(): Promise<void> {
    const { dir } = this.#options;
    // One that is being made for a pull under way has no user yet.
    if (this.#pulls.size > 0) return;
    const used = new Set([...this.#images.values()].map(({ base }) => base));
    for (const name of await readdir(dir))
      if (/^base-[0-9a-f]{64}$/.test(name) && !used.has(name))
        await this.#discard(path.join(dir, name));
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

/** Reads everything, verified, and keeps nothing. */
async function readLayers(image: ResolvedImage, client: RegistryClient): Promise<void> {
  for (const layer of image.manifest.layers)
    for await (const _chunk of client.getBlob(image.name, layer));
}

function hexOf(digest: string): string {
  return digest.slice("sha256:".length);
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as unknown;
  } catch {
    return undefined;
  }
}

const listOf = ({ rootDir }: StoredImage): string => path.join(path.dirname(rootDir), listName);
