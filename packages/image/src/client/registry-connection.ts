import { type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { type OutboundGuard } from "@spry/kube";
import { type ImageName, isLoopback } from "../image-name.ts";
import {
  basicAuthorization,
  type Credentials,
  fetchToken,
  parseChallenge,
  type TokenWay,
} from "./authorization.ts";
import { plainToTls } from "./explained-failure.ts";
import { type Body, describeUrl, readAll, send } from "./http.ts";
import { ImageError } from "./image-error.ts";
import { RegistryError } from "./registry-error.ts";

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
  credentials?: (host: string) => Credentials | undefined | Promise<Credentials | undefined>;
  /** Certificates (PEM) of private authorities by host, such as from `readCertificates`. */
  certificates?: (host: string) => string | undefined;
  /** Certificates (PEM) of an authority to trust at all hosts; unlike those by host, they do not make loopback speak TLS. */
  authority?: string | undefined;
  /** Hosts that are spoken to without TLS, besides those on loopback. Default none. */
  plain?: readonly string[];
  /** Attempts in all for what may pass: no answer, 5xx, 429. Default 5, within about three seconds. */
  attempts?: number;
  /**
   * A registry that has answered before may be on its way back: for so many milliseconds a refused or broken connection
   * is not the last attempt. Default none.
   */
  patienceMs?: number;
  /** Which addresses are connected to, redirects and authorization services included; see `HttpRequest`. Default all. */
  guard?: OutboundGuard | undefined;
}

interface Call {
  headers?: OutgoingHttpHeaders;
  body?: Body;
  /** Statuses to return; any other is thrown. */
  expect: readonly number[];
  /** What a token for this call must allow. */
  scopes: readonly string[];
  signal?: AbortSignal | undefined;
}

const redirectLimit = 5;
/** A registry that has come back is found so soon. */
const reconnectMs = 500;

/** Requests to registries: where they go, as whom, over redirects, and again when it is worth it. */
export class RegistryConnection {
  readonly #options: RegistryClientOptions;
  readonly #trusted: (host: string) => string | undefined;
  #hasAnswered = false;
  readonly #tokens = new Map<string, { authorization: string; until: number }>();

  constructor(options: RegistryClientOptions) {
    this.#options = options;
    const { certificates, authority } = options;
    this.#trusted = (host) => {
      const pems = [certificates?.(host), authority].filter((pem) => pem !== undefined);
      return pems.length > 0 ? pems.join("\n") : undefined;
    };
  }

  /** One request below `/v2/<repository>/`, tried again after what may pass. */
  call(method: string, name: ImageName, path: string, call: Call): Promise<IncomingMessage> {
    return this.retry(() => this.request(method, name, path, call), call.signal);
  }

  /** Where an answer's `Location` points, which may be relative. */
  locationOf(name: ImageName, answer: IncomingMessage): URL {
    return new URL(answer.headers.location ?? "", this.#urlOf(name.host));
  }

  async retry<T>(attempt: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { attempts = 5, patienceMs = 0 } = this.#options;
    const begin = performance.now();
    for (let failures = 0; ;) {
      try {
        return await attempt();
      } catch (error) {
        const temporary = error instanceof RegistryError && error.temporary;
        if (!temporary) throw error;
        const isPatient = this.#hasAnswered && performance.now() - begin < patienceMs;
        const mayReturn = isPatient && isDisconnection(error);
        if (++failures >= attempts && !mayReturn) throw error;
        const usual = Math.min(error.retryAfterMs ?? 100 * 2 ** failures, 10_000);
        const pause = mayReturn ? Math.min(usual, reconnectMs) : usual;
        // Not by a clock that lets the process end meanwhile: in the builder nothing else goes on.
        await new Promise((resolve) => setTimeout(resolve, pause));
        signal?.throwIfAborted();
      }
    }
  }

  /** One request, once: with what is known about authorization, and with what a 401 asks for. */
  async request(
    method: string,
    name: ImageName,
    to: string | URL,
    call: Call,
  ): Promise<IncomingMessage> {
    const home = this.#urlOf(name.host);
    const url = typeof to === "string" ? new URL(`/v2/${name.repository}/${to}`, home) : to;
    const { origin } = new URL(home);
    const credentials = await this.#credentialsOf(name.host);
    const { guard } = this.#options;
    const certificates = this.#trusted;
    const tokenKey = `${home} ${call.scopes.join(" ")}`;
    const token = this.#tokens.get(tokenKey);
    let authorization = basicAuthorization(credentials);
    if (token && token.until > performance.now()) authorization = token.authorization;

    let answer = await follow(method, url, call, { origin, authorization, certificates, guard });
    this.#hasAnswered = true;
    const challenge =
      answer.statusCode === 401
        ? parseChallenge(answer.headers["www-authenticate"] ?? "")
        : undefined;
    if (challenge?.scheme === "bearer") {
      answer.resume();
      const fetched = await fetchToken(challenge, call.scopes, credentials, {
        origin,
        certificates,
        guard,
      });
      authorization = `Bearer ${fetched.token}`;
      // Ten seconds early, so that it does not run out on the way.
      const until = performance.now() + fetched.expiresInMs - 10_000;
      this.#tokens.set(tokenKey, { authorization, until });
      answer = await follow(method, url, call, { origin, authorization, certificates, guard });
    }
    if (call.expect.includes(answer.statusCode ?? 0)) return answer;
    throw await errorOf(answer, method, url);
  }

  /**
   * Where a host in image names is. On this machine registries are spoken to without TLS, unless there are
   * certificates for them.
   */
  #urlOf(host: string): string {
    const resolved = this.#options.resolve?.(host);
    if (resolved) return resolved.url;
    const address = host === "docker.io" ? "registry-1.docker.io" : host;
    const isLocal = isLoopback(host) || this.#options.plain?.includes(host);
    const isPlain = isLocal && this.#options.certificates?.(host) === undefined;
    return `${isPlain ? "http" : "https"}://${address}`;
  }

  async #credentialsOf(host: string): Promise<Credentials | undefined> {
    const resolved = this.#options.resolve?.(host);
    if (!resolved) return this.#options.credentials?.(host);
    const { username, password } = resolved;
    return username !== undefined && password !== undefined ? { username, password } : undefined;
  }
}

/**
 * Follows redirects, to storage services for the most part. Our authorization is for the registry
 * alone: neither they nor an upload's address elsewhere get to see it.
 */
async function follow(
  method: string,
  url: URL,
  { headers, body, signal }: Call,
  { origin, authorization, certificates, guard }: TokenWay & { authorization: string | undefined },
): Promise<IncomingMessage> {
  const redirects = method === "GET" || method === "HEAD" ? [301, 302, 303, 307, 308] : [307, 308];
  for (let at = url, hops = 0; ; hops++) {
    const ours = at.origin === origin && authorization !== undefined ? { authorization } : {};
    const answer = await send({
      method,
      url: at,
      headers: { ...headers, ...ours },
      body,
      signal,
      ca: certificates?.(at.host),
      guard,
    });
    const { location } = answer.headers;
    if (!redirects.includes(answer.statusCode ?? 0) || !location) return answer;
    answer.resume();
    const what = `${method} ${describeUrl(url)}`;
    if (hops === redirectLimit) throw new ImageError(`${what}: redirected too often`);
    if (!URL.canParse(location, at.href))
      throw new ImageError(`${what}: redirected to what is not a URL`);
    const next = new URL(location, at);
    if (!/^https?:$/.test(next.protocol))
      throw new ImageError(`${what}: redirected to what is not a URL of HTTP`);
    if (at.protocol === "https:" && next.protocol !== "https:")
      throw new ImageError(`${what}: redirected from TLS to plain HTTP`);
    at = next;
  }
}

/** As when a registry restarts; a name that does not resolve or an unknown certificate will not pass so soon. */
function isDisconnection({ status, cause }: RegistryError): boolean {
  const { code } = (cause ?? {}) as { code?: string };
  return status === 0 && ["ECONNREFUSED", "ECONNRESET", "EPIPE"].includes(code ?? "");
}

async function errorOf(answer: IncomingMessage, method: string, url: URL): Promise<RegistryError> {
  const status = answer.statusCode ?? 0;
  const text = (await readAll(answer, 64 * 1024).catch(() => "")).toString();
  let code = "";
  let message = text.slice(0, 200).trim();
  try {
    const body = JSON.parse(text) as { errors?: { code?: unknown; message?: unknown }[] };
    const [first] = body.errors ?? [];
    code = textOf(first?.code);
    message = textOf(first?.message);
  } catch {
    // Not the specification's JSON, a proxy's page for example: its own words are said above.
  }
  if (
    status === 400 &&
    url.protocol === "http:" &&
    /HTTP request (?:was sent )?to (?:an )?HTTPS/i.test(text)
  )
    message = plainToTls(url);
  const parts = [`${method} ${describeUrl(url)}`, `${status} ${code}`.trim(), message];
  return new RegistryError(parts.filter(Boolean).join(": "), {
    status,
    host: url.host,
    code,
    retryAfterMs: retryAfterMs(answer.headers["retry-after"], Date.now()),
  });
}

const textOf = (value: unknown) => (typeof value === "string" ? value : "");

/** How long `Retry-After` asks to wait: seconds, or a moment (RFC 9110, section 10.2.3); undefined for anything else. */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
  return ms > 0 ? ms : undefined;
}
