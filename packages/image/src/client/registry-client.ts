import { type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { type Digest, digestOf, isDigest, verifyContent } from "../digest.ts";
import { formatImageName, type ImageName, isLoopback, parseImageName } from "../image-name.ts";
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
import {
  basicAuthorization,
  type Credentials,
  fetchToken,
  parseChallenge,
} from "./authorization.ts";
import { type Body, describeUrl, readAll, send } from "./http.ts";
import { isNotFound, RegistryError } from "./registry-error.ts";

/** Where a registry really is, and who we are there. */
export interface RegistryEndpoint {
  /** Origin, such as `http://127.0.0.1:5000`. */
  url: string;
  username?: string | undefined;
  password?: string | undefined;
}

export interface RegistryClientOptions {
  /** Registry host of an image name → where it is; undefined means at the host itself. */
  resolve?: (host: string) => RegistryEndpoint | undefined;
  /** Credentials by host, such as from `readDockerConfig`. */
  credentials?: (host: string) => Credentials | undefined;
  /** Attempts in all for what may pass: no answer, 5xx, 429. Default 5, within about three seconds. */
  attempts?: number;
}

/** An image on a registry, of one platform. */
export interface ResolvedImage {
  name: ImageName;
  /** Of the platform's manifest, not of an index above it. */
  digest: Digest;
  manifest: ImageManifest;
  config: ImageConfig;
}

interface Call {
  headers?: OutgoingHttpHeaders;
  body?: Body;
  /** Statuses to return; any other is thrown. */
  expect: readonly number[];
  scopes: readonly string[];
  signal?: AbortSignal | undefined;
}

/** Up to this size a blob goes out with the request that opens the upload. */
const singleRequestLimit = 256 * 1024;
const configSizeLimit = 4 * 1024 * 1024;
const redirectLimit = 5;

/** A client of the OCI distribution specification 1.1. Image names are full: `host/repository:tag`. */
export class RegistryClient {
  readonly #options: RegistryClientOptions;
  readonly #tokens = new Map<string, { authorization: string; until: number }>();

  constructor(options: RegistryClientOptions = {}) {
    this.#options = options;
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
      const entry = selectPlatform(found.manifest, options.platform ?? currentPlatform());
      found = await this.getManifest({ ...name, digest: entry.digest }, { signal });
      if (isIndex(found.manifest))
        throw new Error(`${formatImageName(name)}: an index in an index`);
    }
    const { digest, manifest } = found;
    const config = JSON.parse(
      (await this.readBlob(name, manifest.config, { limit: configSizeLimit, signal })).toString(),
    ) as ImageConfig;
    return { name: { ...name, digest }, digest, manifest, config };
  }

  /** The manifest that a name's digest or tag stands for; its bytes are verified against the digest. */
  async getManifest(
    name: ImageName,
    options: { signal?: AbortSignal | undefined } = {},
  ): Promise<{ digest: Digest; bytes: Buffer; manifest: ImageManifest | ImageIndex }> {
    const { manifest, index, dockerManifest, dockerIndex } = mediaTypes;
    const answer = await this.#call("GET", name, `manifests/${referenceOf(name)}`, {
      headers: { accept: [manifest, index, dockerManifest, dockerIndex].join(", ") },
      expect: [200],
      scopes: pull(name),
      ...options,
    });
    const bytes = await readAll(answer, manifestSizeLimit);
    const digest = digestOf(bytes);
    if (name.digest !== undefined && digest !== name.digest)
      throw new Error(`${formatImageName(name)}: the registry sent another manifest, ${digest}`);
    return { digest, bytes, manifest: JSON.parse(bytes.toString()) as ImageManifest | ImageIndex };
  }

  /** The digest behind a name, without its manifest; undefined when there is none. */
  async headManifest(name: ImageName): Promise<Digest | undefined> {
    try {
      const answer = await this.#call("HEAD", name, `manifests/${referenceOf(name)}`, {
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
    const answer = await this.#call("PUT", name, `manifests/${reference}`, {
      headers: { "content-type": mediaType },
      body: bodyOf(bytes),
      expect: [201, 200],
      scopes: push(name),
    });
    answer.resume();
    return digest;
  }

  async deleteManifest(name: ImageName): Promise<void> {
    const answer = await this.#call("DELETE", name, `manifests/${referenceOf(name)}`, {
      expect: [202, 200, 404],
      scopes: [`repository:${name.repository}:pull,push,delete`],
    });
    answer.resume();
  }

  async hasBlob(name: ImageName, digest: Digest): Promise<boolean> {
    const answer = await this.#call("HEAD", name, `blobs/${digest}`, {
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
    const answer = await this.#call("GET", name, `blobs/${blob.digest}`, {
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
    const answer = await this.#call("POST", name, `blobs/uploads/?${query}`, {
      expect: [201, 202],
      scopes: [...push(name), `repository:${from}:pull`],
    });
    answer.resume();
    if (answer.statusCode === 201) return true;
    // The registry has opened an upload instead, which nobody will use.
    const location = answer.headers.location;
    if (location) {
      const url = new URL(location, this.#endpoint(name.host).url);
      (
        await this.#request("DELETE", name, url, {
          expect: [204, 202, 404, 405],
          scopes: push(name),
        })
      ).resume();
    }
    return false;
  }

  /** Sends a blob; one that breaks in the middle is sent again from the start. */
  async putBlob(name: ImageName, digest: Digest, body: Body): Promise<void> {
    await this.#retry(async () => {
      const single = body.size <= singleRequestLimit;
      const query = single ? `?digest=${encodeURIComponent(digest)}` : "";
      const opened = await this.#request("POST", name, this.#url(name, `blobs/uploads/${query}`), {
        headers: single ? { "content-type": "application/octet-stream" } : { "content-length": 0 },
        ...(single ? { body } : {}),
        expect: [202, 201],
        scopes: push(name),
      });
      opened.resume();
      // Some registries do not take it in one request and open an upload as if nothing were there.
      if (opened.statusCode === 201) return;
      const url = new URL(opened.headers.location ?? "", this.#endpoint(name.host).url);
      url.searchParams.set("digest", digest);
      const closed = await this.#request("PUT", name, url, {
        headers: { "content-type": "application/octet-stream" },
        body,
        expect: [201],
        scopes: push(name),
      });
      closed.resume();
    });
  }

  /** The endpoint of a host in image names. */
  #endpoint(host: string): RegistryEndpoint {
    const resolved = this.#options.resolve?.(host);
    if (resolved) return resolved;
    const credentials = this.#options.credentials?.(host);
    const address = host === "docker.io" ? "registry-1.docker.io" : host;
    return { url: `${isLoopback(host) ? "http" : "https"}://${address}`, ...credentials };
  }

  #url(name: ImageName, path: string): URL {
    return new URL(`/v2/${name.repository}/${path}`, this.#endpoint(name.host).url);
  }

  #call(method: string, name: ImageName, path: string, call: Call): Promise<IncomingMessage> {
    return this.#retry(() => this.#request(method, name, this.#url(name, path), call), call.signal);
  }

  async #retry<T>(attempt: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const attempts = this.#options.attempts ?? 5;
    for (let failures = 0; ;) {
      try {
        return await attempt();
      } catch (error) {
        const temporary = error instanceof RegistryError && error.temporary;
        if (!temporary || ++failures >= attempts) throw error;
        const pause = Math.min(error.retryAfterMs ?? 100 * 2 ** failures, 10_000);
        await new Promise((resolve) => setTimeout(resolve, pause));
        signal?.throwIfAborted();
      }
    }
  }

  /** One request with authorization: what is known at once, and what the challenge asks for on a 401. */
  async #request(method: string, name: ImageName, url: URL, call: Call): Promise<IncomingMessage> {
    const endpoint = this.#endpoint(name.host);
    const { username, password } = endpoint;
    const credentials =
      username !== undefined && password !== undefined ? { username, password } : undefined;
    const tokenKey = `${endpoint.url} ${call.scopes.join(" ")}`;
    const token = this.#tokens.get(tokenKey);
    let authorization = credentials ? basicAuthorization(credentials) : undefined;
    if (token && token.until > Date.now()) authorization = token.authorization;

    let answer = await this.#follow(method, url, call, authorization);
    if (answer.statusCode === 401) {
      const challenge = parseChallenge(answer.headers["www-authenticate"] ?? "");
      if (challenge?.scheme === "bearer") {
        answer.resume();
        const fetched = await fetchToken(challenge, call.scopes, credentials);
        authorization = `Bearer ${fetched.token}`;
        // Ten seconds early, so that it does not run out on the way.
        this.#tokens.set(tokenKey, {
          authorization,
          until: Date.now() + fetched.expiresInMs - 10_000,
        });
        answer = await this.#follow(method, url, call, authorization);
      }
    }
    if (call.expect.includes(answer.statusCode ?? 0)) return answer;
    throw await errorOf(answer, method, url);
  }

  /** Follows redirects, to storage services for the most part: they must not see our authorization. */
  async #follow(method: string, url: URL, call: Call, authorization: string | undefined) {
    const { headers, body, signal } = call;
    for (let at = url, hops = 0; ; hops++) {
      const trusted = at.origin === url.origin && authorization !== undefined;
      const answer = await send({
        method,
        url: at,
        headers: trusted ? { ...headers, authorization } : { ...headers },
        body,
        signal,
      });
      const { location } = answer.headers;
      if (![301, 302, 303, 307, 308].includes(answer.statusCode ?? 0) || !location) return answer;
      answer.resume();
      if (hops === redirectLimit)
        throw new Error(`${method} ${describeUrl(url)}: redirected too often`);
      const next = new URL(location, at);
      if (at.protocol === "https:" && next.protocol !== "https:")
        throw new Error(`${method} ${describeUrl(url)}: redirected from TLS to plain ${next.host}`);
      at = next;
    }
  }
}

function referenceOf(name: ImageName): string {
  return name.digest ?? name.tag ?? "latest";
}

const pull = (name: ImageName) => [`repository:${name.repository}:pull`];
const push = (name: ImageName) => [`repository:${name.repository}:pull,push`];

export function bodyOf(bytes: Uint8Array): Body {
  return { size: bytes.length, open: () => bytes };
}

async function errorOf(answer: IncomingMessage, method: string, url: URL): Promise<RegistryError> {
  const status = answer.statusCode ?? 0;
  const text = (await readAll(answer, 64 * 1024).catch(() => "")).toString();
  let code = "";
  let message = text.slice(0, 200).trim();
  try {
    const first = (JSON.parse(text) as { errors?: { code?: string; message?: string }[] })
      .errors?.[0];
    code = first?.code ?? "";
    message = first?.message ?? "";
  } catch {
    // Not the specification's JSON, a proxy's page for example: its own words are said above.
  }
  const parts = [`${method} ${describeUrl(url)}`, `${status} ${code}`.trim(), message];
  const seconds = Number(answer.headers["retry-after"]);
  return new RegistryError(parts.filter(Boolean).join(": "), {
    status,
    code,
    retryAfterMs: seconds > 0 ? seconds * 1000 : undefined,
  });
}
