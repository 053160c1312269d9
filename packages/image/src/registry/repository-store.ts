import { randomUUID } from "node:crypto";
import {
  existsSync,
  type Dirent,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Clock } from "../clock.ts";
import { type Digest, digestOfHex, hexOf, isDigest } from "../digest.ts";
import { isRepository, isTag } from "../image-name.ts";
import { type Descriptor } from "../manifest.ts";
import { markAsUsed, syncDirectory, writeDurably } from "./durable-file.ts";

/** What a repository knows of a manifest apart from its content. */
export interface ManifestRecord {
  mediaType: string;
  /** Set when the manifest refers to another one: its entry in the referrers of that one. */
  subject?: Digest;
}

/** A repository's directories; in an order in which each relies on those before. */
const parts = ["_blobs", "_referrers", "_manifests", "_tags"];

/**
 * Which blobs, manifests and tags belong to which repository, as small files under
 * `<dir>/repositories/<name>/`: `_blobs/<hex>`, `_manifests/<hex>`, `_tags/<tag>`,
 * `_referrers/<subject hex>/<hex>`. No part of a repository's name starts with `_`.
 */
export class RepositoryStore {
  readonly #dir: string;
  readonly #scratch: string;
  readonly #clock: Clock;

  constructor(dir: string, scratch: string, clock: Clock) {
    this.#clock = clock;
    this.#dir = join(dir, "repositories");
    this.#scratch = scratch;
    mkdirSync(this.#dir, { recursive: true });
  }

  exists(repository: string): boolean {
    return (
      existsSync(this.#path(repository, "_blobs")) ||
      existsSync(this.#path(repository, "_manifests"))
    );
  }

  hasBlob(repository: string, digest: Digest): boolean {
    return existsSync(this.#path(repository, "_blobs", hexOf(digest)));
  }

  /** On disk for sure once a manifest of the repository is: a push is worth nothing before. */
  addBlob(repository: string, digest: Digest): void {
    mkdirSync(this.#path(repository, "_blobs"), { recursive: true });
    writeFileSync(this.#path(repository, "_blobs", hexOf(digest)), "");
    this.touchBlob(repository, digest);
  }

  blobs(repository: string): Digest[] {
    return digestsIn(this.#names(repository, "_blobs"));
  }

  /** When the repository last got the blob, or was asked for it, in milliseconds since the epoch. */
  blobUsedAt(repository: string, digest: Digest): number {
    return this.#usedAt(repository, "_blobs", hexOf(digest));
  }

  touchBlob(repository: string, digest: Digest): void {
    this.#touch(repository, "_blobs", hexOf(digest));
  }

  removeBlob(repository: string, digest: Digest): void {
    rmSync(this.#path(repository, "_blobs", hexOf(digest)), { force: true });
  }

  manifest(repository: string, digest: Digest): ManifestRecord | undefined {
    const text = this.#read(repository, "_manifests", hexOf(digest));
    return text === undefined ? undefined : (JSON.parse(text) as ManifestRecord);
  }

  async addManifest(repository: string, digest: Digest, record: ManifestRecord): Promise<void> {
    await syncDirectory(this.#path(repository, "_blobs"));
    await this.#write(JSON.stringify(record), repository, "_manifests", hexOf(digest));
    this.touchManifest(repository, digest);
  }

  /** When the manifest was last pushed or pulled, in milliseconds since the epoch; 0 when it does not exist. */
  manifestUsedAt(repository: string, digest: Digest): number {
    return this.#usedAt(repository, "_manifests", hexOf(digest));
  }

  touchManifest(repository: string, digest: Digest): void {
    this.#touch(repository, "_manifests", hexOf(digest));
  }

  /**
   * Removes a manifest with every tag that points to it and its entry in its subject's referrers.
   * `tags` are those to look at, by default all of the repository.
   */
  removeManifest(repository: string, digest: Digest, tags = this.tags(repository)): void {
    for (const tag of tags)
      if (this.tag(repository, tag) === digest) this.removeTag(repository, tag);
    const subject = this.manifest(repository, digest)?.subject;
    if (subject)
      rmSync(this.#path(repository, "_referrers", hexOf(subject), hexOf(digest)), { force: true });
    rmSync(this.#path(repository, "_manifests", hexOf(digest)), { force: true });
  }

  manifests(repository: string): Digest[] {
    return digestsIn(this.#names(repository, "_manifests"));
  }

  /** What a tag points to. */
  tag(repository: string, tag: string): Digest | undefined {
    const text = isTag(tag) ? this.#read(repository, "_tags", tag) : undefined;
    return text !== undefined && isDigest(text) ? text : undefined;
  }

  async setTag(repository: string, tag: string, digest: Digest): Promise<void> {
    await this.#write(digest, repository, "_tags", tag);
  }

  removeTag(repository: string, tag: string): void {
    rmSync(this.#path(repository, "_tags", tag), { force: true });
  }

  /** Tags in the order that the specification asks for: by character. */
  tags(repository: string): string[] {
    return this.#names(repository, "_tags").sort();
  }

  /** What refers to a manifest, by digest, those after `last`; each is read when it is wanted. */
  *referrers(repository: string, subject: Digest, last = ""): Generator<Descriptor> {
    const at = ["_referrers", hexOf(subject)] as const;
    for (const hex of this.#names(repository, ...at).sort()) {
      const text = hex > last ? this.#read(repository, ...at, hex) : undefined;
      if (text !== undefined) yield JSON.parse(text) as Descriptor;
    }
  }

  async addReferrer(repository: string, subject: Digest, referrer: Descriptor): Promise<void> {
    const at = ["_referrers", hexOf(subject), hexOf(referrer.digest)];
    await this.#write(JSON.stringify(referrer), repository, ...at);
  }

  /** Every repository, sorted. */
  list(): string[] {
    const found: string[] = [];
    const visit = (path: string) => {
      let holds = false;
      for (const entry of directoriesIn(join(this.#dir, path))) {
        if (entry.startsWith("_")) holds = true;
        else visit(path ? `${path}/${entry}` : entry);
      }
      if (holds && isRepository(path)) found.push(path);
    };
    visit("");
    return found.sort();
  }

  /** Gives a repository another name. What is there under that name stays. */
  move(from: string, to: string): void {
    mkdirSync(this.#path(to), { recursive: true });
    for (const part of parts) mergeInto(this.#path(from, part), this.#path(to, part));
    this.remove(from);
  }

  /** Removes all repositories whose names begin with these parts. Their blobs go with the next sweep. */
  async removeBelow(prefix: string): Promise<void> {
    const gone = join(this.#scratch, randomUUID());
    try {
      renameSync(this.#path(prefix), gone);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    await syncDirectory(this.#dir);
    await rm(gone, { recursive: true, force: true });
  }

  /** Forces what has been removed to disk. */
  async sync(repository: string): Promise<void> {
    for (const part of ["_tags", "_manifests"]) await syncDirectory(this.#path(repository, part));
  }

  /** A repository without blobs and manifests is none. */
  removeIfEmpty(repository: string): void {
    if (this.blobs(repository).length > 0 || this.manifests(repository).length > 0) return;
    this.remove(repository);
  }

  /** Removes a repository; those whose names begin with its own stay. */
  remove(repository: string): void {
    for (const part of parts)
      rmSync(this.#path(repository, part), { recursive: true, force: true });
    for (let path = repository; path !== "."; path = dirname(path)) {
      try {
        rmdirSync(this.#path(path));
      } catch {
        // Others live below it.
        return;
      }
    }
  }

  #usedAt(...parts: string[]): number {
    return statSync(this.#path(...parts), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  }

  #touch(...parts: string[]): void {
    markAsUsed(this.#path(...parts), this.#clock);
  }

  #path(...parts: string[]): string {
    return join(this.#dir, ...parts);
  }

  #read(...parts: string[]): string | undefined {
    try {
      return readFileSync(this.#path(...parts), "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  #write(content: string, ...parts: string[]): Promise<void> {
    return writeDurably(this.#path(...parts), content, this.#scratch);
  }

  #names(...parts: string[]): string[] {
    try {
      return readdirSync(this.#path(...parts));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  }
}

function mergeInto(from: string, to: string): void {
  if (!existsSync(from)) return;
  if (!existsSync(to) || !statSync(to).isDirectory()) return renameSync(from, to);
  for (const name of readdirSync(from)) mergeInto(join(from, name), join(to, name));
}

function digestsIn(names: string[]): Digest[] {
  return names.map(digestOfHex).filter((digest) => digest !== undefined);
}

function directoriesIn(path: string): string[] {
  const entries: Dirent[] = readdirSync(path, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}
