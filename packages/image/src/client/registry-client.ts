import { type Digest, digestOf, isDigest, verifyContent } from "../digest.ts";
import { formatImageName, type ImageName, parseImageName } from "../image-name.ts";
import {
  currentPlatform,
  type Descriptor,
  type ImageConfig,
  type ImageIndex,
  type ImageManifest,
  isIndex,
  manifestSizeLimit,
  mediaTypes,
  type Platform,
  selectPlatform,
} from "../manifest.ts";
import { uploadBlob } from "./blob-upload.ts";
import { type Body, readAll } from "./http.ts";
import { ImageError, parseJson } from "./image-error.ts";
import { RegistryConnection, type RegistryClientOptions } from "./registry-connection.ts";
import { isNotFound } from "./registry-error.ts";

export { type RegistryClientOptions, type RegistryEndpoint } from "./registry-connection.ts";

/** An image on a registry, of one platform. */
export interface ResolvedImage {
  name: ImageName;
  /** Of the platform's manifest, not of an index above it. */
  digest: Digest;
  manifest: ImageManifest;
  config: ImageConfig;
}

const configSizeLimit = 4 * 1024 * 1024;

/** A client of the OCI distribution specification 1.1. Image names are full: `host/repository:tag`. */
export class RegistryClient {
  readonly #connection: RegistryConnection;

  constructor(options: RegistryClientOptions = {}) {
    this.#connection = new RegistryConnection(options);
  }

  /** Manifest and configuration of an image; of an index, the entry for the platform. */
  async resolveImage(
    image: string | ImageName,
    options: { platform?: Platform; signal?: AbortSignal | undefined } = {},
  ): Promise<ResolvedImage> {
    const name = typeof image === "string" ? parseImageName(image) : image;
    const { signal } = options;
    let found = await this.getManifest(name, { signal });
    if (isIndex(found.manifest)) {
      assertIsImage(name, found.manifest.manifests);
      const entry = selectPlatform(found.manifest, options.platform ?? currentPlatform());
      assertDigests(name, [entry]);
      found = await this.getManifest({ ...name, digest: entry.digest }, { signal });
      if (isIndex(found.manifest))
        throw new ImageError(`${formatImageName(name)}: an index in an index`);
    }
    const { digest, manifest } = found;
    assertIsImage(name, manifest.config && manifest.layers);
    assertDigests(name, [manifest.config, ...manifest.layers]);
    const config = parseJson(
      await this.readBlob(name, manifest.config, { limit: configSizeLimit, signal }),
      `the configuration of ${formatImageName(name)}`,
    ) as ImageConfig | null;
    assertIsImage(name, config?.rootfs?.diff_ids);
    return { name: { ...name, digest }, digest, manifest, config: config as ImageConfig };
  }

  /** The manifest that a name's digest or tag stands for; its bytes are verified against the digest. */
  async getManifest(
    name: ImageName,
    options: { signal?: AbortSignal | undefined } = {},
  ): Promise<{ digest: Digest; bytes: Buffer; manifest: ImageManifest | ImageIndex }> {
    const { manifest, index, dockerManifest, dockerIndex } = mediaTypes;
    const answer = await this.#connection.call("GET", name, `manifests/${referenceOf(name)}`, {
      headers: { accept: [manifest, index, dockerManifest, dockerIndex].join(", ") },
      expect: [200],
      scopes: pull(name),
      ...options,
    });
    const bytes = await readAll(answer, manifestSizeLimit);
    const digest = digestOf(bytes);
    if (name.digest !== undefined && digest !== name.digest)
      throw new Error(`${formatImageName(name)}: the registry sent another manifest, ${digest}`);
    // The digest in the name may be from an index that the registry has sent.
    const what = `the manifest of ${name.host}/${name.repository}`;
    const read = parseJson(bytes, what);
    if (typeof read !== "object" || read === null) throw new ImageError(`${what} is not an object`);
    return { digest, bytes, manifest: read as ImageManifest | ImageIndex };
  }

  /** The digest behind a name, without its manifest; undefined when there is none. */
  async headManifest(name: ImageName): Promise<Digest | undefined> {
    try {
      const answer = await this.#connection.call("HEAD", name, `manifests/${referenceOf(name)}`, {
        headers: { accept: Object.values(mediaTypes).join(", ") },
        expect: [200],
        scopes: pull(name),
      });
      answer.resume();
      const digest = answer.headers["docker-content-digest"];
      if (typeof digest === "string" && isDigest(digest)) return digest;
      return (await this.getManifest(name)).digest;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Stores a manifest under the name's tag, or else its digest. */
  async putManifest(name: ImageName, bytes: Uint8Array, mediaType: string): Promise<Digest> {
    const digest = digestOf(bytes);
    const reference = name.tag ?? digest;
    const answer = await this.#connection.call("PUT", name, `manifests/${reference}`, {
      headers: { "content-type": mediaType },
      body: bodyOf(bytes),
      expect: [201, 200],
      scopes: push(name),
    });
    answer.resume();
    return digest;
  }

  /**
   * Stores a manifest that has a subject. Where the registry keeps no list of a subject's referrers,
   * the list is an index under a tag (distribution specification 1.1, "Unavailable Referrers API").
   */
  async putReferrer(name: ImageName, manifest: ImageManifest): Promise<void> {
    const bytes = Buffer.from(JSON.stringify(manifest));
    const digest = digestOf(bytes);
    const mediaType = manifest.mediaType ?? mediaTypes.manifest;
    const answer = await this.#connection.call("PUT", name, `manifests/${digest}`, {
      headers: { "content-type": mediaType },
      body: bodyOf(bytes),
      expect: [201, 200],
      scopes: push(name),
    });
    answer.resume();
    const { subject, artifactType, annotations } = manifest;
    if (!subject || answer.headers["oci-subject"] !== undefined) return;
    const list: ImageName = { ...name, tag: subject.digest.replace(":", "-") };
    const before = await this.getManifest(list).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    const known = before && isIndex(before.manifest) ? before.manifest.manifests : [];
    if (known.some((entry) => entry.digest === digest)) return;
    const entry: Descriptor = {
      mediaType,
      digest,
      size: bytes.length,
      ...(artifactType ? { artifactType } : {}),
      ...(annotations ? { annotations } : {}),
    };
    const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests: [...known, entry] };
    await this.putManifest(list, Buffer.from(JSON.stringify(index)), mediaTypes.index);
  }

  async deleteManifest(name: ImageName): Promise<void> {
    const answer = await this.#connection.call("DELETE", name, `manifests/${referenceOf(name)}`, {
      expect: [202, 200, 404],
      scopes: [`repository:${name.repository}:pull,push,delete`],
    });
    answer.resume();
  }

  async hasBlob(name: ImageName, digest: Digest): Promise<boolean> {
    const answer = await this.#connection.call("HEAD", name, `blobs/${digest}`, {
      expect: [200, 404],
      scopes: pull(name),
    });
    answer.resume();
    return answer.statusCode === 200;
  }

  /** A blob's content as it comes, verified: the last step of reading throws when it is not right. */
  async *getBlob(
    name: ImageName,
    blob: Pick<Descriptor, "digest" | "size">,
    options: { signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<Uint8Array> {
    const answer = await this.#connection.call("GET", name, `blobs/${blob.digest}`, {
      expect: [200],
      scopes: pull(name),
      ...options,
    });
    yield* verifyContent(answer as AsyncIterable<Uint8Array>, blob);
  }

  /** A whole small blob, verified. */
  async readBlob(
    name: ImageName,
    blob: Pick<Descriptor, "digest" | "size">,
    options: { limit: number; signal?: AbortSignal | undefined },
  ): Promise<Buffer> {
    if (blob.size > options.limit)
      throw new Error(`${blob.digest}: ${blob.size} bytes, more than the ${options.limit} taken`);
    const chunks: Uint8Array[] = [];
    for await (const chunk of this.getBlob(name, blob, options)) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  /** Takes a blob over from another repository of the same registry; false when it has to be sent. */
  async mountBlob(name: ImageName, digest: Digest, from: string): Promise<boolean> {
    const query = `mount=${encodeURIComponent(digest)}&from=${encodeURIComponent(from)}`;
    const answer = await this.#connection.call("POST", name, `blobs/uploads/?${query}`, {
      expect: [201, 202],
      scopes: [...push(name), `repository:${from}:pull`],
    });
    answer.resume();
    if (answer.statusCode === 201) return true;
    // The registry has opened an upload instead, which will not be used.
    const upload = this.#connection.locationOf(name, answer);
    const closed = await this.#connection.request("DELETE", name, upload, {
      expect: [204, 202, 404, 405],
      scopes: push(name),
    });
    closed.resume();
    return false;
  }

  /** Sends a blob; a large one that breaks midway continues where it broke. */
  putBlob(name: ImageName, digest: Digest, body: Body): Promise<void> {
    return uploadBlob(this.#connection, name, digest, body);
  }
}

/** A registry keeps charts, signatures and documents, too, in manifests like those of images. */
function assertIsImage(name: ImageName, list: unknown): void {
  if (!Array.isArray(list))
    throw new ImageError(
      `${formatImageName(name)} is not an image that can be run, but another kind of artifact`,
    );
}

/** They become parts of paths at the registry. */
function assertDigests(name: ImageName, list: readonly (Descriptor | null)[]): void {
  if (!list.every((each) => typeof each?.digest === "string" && isDigest(each.digest)))
    throw new ImageError(`${formatImageName(name)} names content without a valid digest`);
}

function referenceOf(name: ImageName): string {
  return name.digest ?? name.tag ?? "latest";
}

const pull = (name: ImageName) => [`repository:${name.repository}:pull`];
const push = (name: ImageName) => [`repository:${name.repository}:pull,push`];

export function bodyOf(bytes: Uint8Array): Body {
  return { size: bytes.length, open: () => bytes };
}
