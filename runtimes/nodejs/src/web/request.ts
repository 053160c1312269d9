import { Readable } from "node:stream";
import { heldBodyOf } from "../body-budget.ts";
import { type FunctionRequest } from "../function-request.ts";
import { jsonSize, textSize } from "../json-size.ts";
import { hasBody, limited, readBody } from "../request-body.ts";
import { delegateTo } from "./delegate.ts";

type NativeRequest = globalThis.Request;
type NativeConstructor = typeof globalThis.Request;

/** A request that came in over HTTP, and how large its body may be. */
class Incoming {
  readonly request: FunctionRequest;
  readonly limitMb: number;

  constructor(request: FunctionRequest, limitMb: number) {
    this.request = request;
    this.limitMb = limitMb;
  }

  get url(): string {
    const { headers, protocol, originalUrl } = this.request;
    const scheme = headers["x-forwarded-proto"] === "https" ? "https" : protocol;
    const path = originalUrl.startsWith("/") ? originalUrl : "/";
    // A client may send a Host that is none, and that no URL can hold; or that would be part of the path.
    const host = /^[^\s/?#\\@]+$/.test(headers.host ?? "") ? headers.host : "localhost";
    const url = URL.parse(`${scheme}://${host}${path}`) ?? new URL(`${scheme}://localhost${path}`);
    return url.href;
  }

  get headers(): [string, string][] {
    const { rawHeaders } = this.request;
    const pairs: [string, string][] = [];
    for (let i = 0; i < rawHeaders.length; i += 2)
      pairs.push([rawHeaders[i] ?? "", rawHeaders[i + 1] ?? ""]);
    return pairs;
  }

  get hasBody(): boolean {
    const { method } = this.request;
    return method !== "GET" && method !== "HEAD" && hasBody(this.request);
  }

  toNative(headers: HeadersInit): NativeRequest {
    const { method = "GET", signal } = this.request;
    const body = () =>
      Readable.toWeb(Readable.from(limited(this.request, this.limitMb))) as ReadableStream;
    return new (nativeClass())(this.url, {
      method,
      headers,
      signal,
      ...(this.hasBody && { body: body(), duplex: "half" }),
    });
  }
}

let isRequest: (value: unknown) => value is Request;
/** The native one behind one of ours; anything else as it is. */
export let toNativeRequest: (value: unknown) => NativeRequest;

/**
 * The global `Request` of a Function. What came in over HTTP is read as it is asked for; for all that
 * goes further, or is made by the Function itself, there is a native one behind it.
 */
export class Request {
  readonly #incoming: Incoming | undefined;
  #native: NativeRequest | undefined;
  #headers: Headers | undefined;
  #url: string | undefined;
  #isRead = false;

  constructor(input: unknown, init?: unknown) {
    if (input instanceof Incoming) this.#incoming = input;
    else this.#native = new (nativeClass())(toNativeRequest(input), init as RequestInit);
  }

  get method(): string {
    return this.#incoming?.request.method ?? toNativeRequest(this).method;
  }

  get url(): string {
    return (this.#url ??= this.#incoming?.url ?? toNativeRequest(this).url);
  }

  get headers(): Headers {
    if (!this.#incoming) return toNativeRequest(this).headers;
    return (this.#headers ??= this.#native?.headers ?? new Headers(this.#incoming.headers));
  }

  get signal(): AbortSignal {
    return this.#incoming?.request.signal ?? toNativeRequest(this).signal;
  }

  get bodyUsed(): boolean {
    return this.#isRead || (this.#native?.bodyUsed ?? false);
  }

  async text(): Promise<string> {
    return await this.#decoded(textSize, (text) => text);
  }

  async json(): Promise<unknown> {
    return await this.#decoded(jsonSize, (text) => JSON.parse(text) as unknown);
  }

  /** As the web does: always as UTF-8, without a byte order mark. */
  async #decoded<T>(size: typeof textSize, make: (text: string) => T): Promise<T> {
    const bytes = await this.#read();
    const decode = () => make(new TextDecoder().decode(bytes));
    return this.#incoming ? heldBodyOf(this.#incoming.request).made(bytes, size, decode) : decode();
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    const { buffer } = new Uint8Array(await this.#read());
    return buffer;
  }

  async bytes(): Promise<Uint8Array> {
    return new Uint8Array(await this.#read());
  }

  /** Without a web stream, if none has been requested. */
  async #read(): Promise<Uint8Array> {
    if (this.#isRead) throw new TypeError("Body is unusable: Body has already been read");
    if (!this.#incoming || this.#native)
      return new Uint8Array(await toNativeRequest(this).arrayBuffer());
    if (!this.#incoming.hasBody) return new Uint8Array();
    this.#isRead = true;
    return await readBody(this.#incoming.request, this.#incoming.limitMb);
  }

  static {
    isRequest = (value): value is Request =>
      typeof value === "object" && value !== null && #isRead in value;

    toNativeRequest = (value) => {
      if (!isRequest(value)) return value as NativeRequest;
      if (!value.#native && value.#incoming) {
        value.#native = value.#incoming.toNative(value.#headers ?? value.#incoming.headers);
        // Its body is gone, and it must say so.
        if (value.#isRead) void value.#native.body?.cancel().catch(() => {});
      }
      const made = value.#native as NativeRequest;
      if (value.#headers && value.#headers !== made.headers) copy(value.#headers, made.headers);
      return made;
    };
  }
}

/** The Function may have changed those that it got. */
function copy(from: Headers, to: Headers): void {
  for (const name of Array.from(to.keys())) to.delete(name);
  for (const [name, value] of from) to.append(name, value);
}

function nativeClass(): NativeConstructor {
  const native = globalThis.Request;
  // For who asks whether one of ours is an instance of it.
  if (Object.getPrototypeOf(Request.prototype) !== native.prototype)
    Object.setPrototypeOf(Request.prototype, native.prototype);
  return native;
}

delegateTo(Request, {
  name: "Request",
  members: (
    "body cache credentials destination duplex integrity isHistoryNavigation " +
    "isReloadNavigation keepalive mode redirect referrer referrerPolicy"
  ).split(" "),
  methods: ["blob", "clone", "formData"],
  toNative: toNativeRequest,
  native: nativeClass,
});

export function requestOf(request: FunctionRequest, limitMb: number): Request {
  return new Request(new Incoming(request, limitMb));
}
