import { IncomingMessage } from "node:http";
import { type TLSSocket } from "node:tls";
import { parseRanges, type Ranges } from "./express/byte-ranges.ts";
import { application } from "./express/application.ts";
import { isFresh } from "./express/freshness.ts";
import {
  acceptedCharsets,
  acceptedEncodings,
  acceptedLanguages,
  acceptedTypes,
} from "./express/negotiation.ts";
import { type FunctionResponse } from "./function-response.ts";
import { matchesType } from "./media-type.ts";
import { parseQuery } from "./query.ts";
import { requestIdOf } from "./request-log.ts";

/**
 * `event.extensions.request`: Node.js' request with the members of Express' that Functions use.
 * Everything that costs anything is computed when it is asked for.
 */
export class FunctionRequest extends IncomingMessage {
  /** What `X-Forwarded-*` says counts, as with Express' `trust proxy`. Of the process: it has one Function. */
  static trustsProxies = false;
  /** The parsed body, as in `event.data`; undefined when there is none. */
  body: unknown = undefined;
  /** The body's bytes, decompressed, for signatures over them; undefined when there are none. */
  rawBody: Buffer | undefined = undefined;
  /** The response to it. */
  res: FunctionResponse | undefined = undefined;
  #controller: AbortController | undefined;
  #abandoned: Error | undefined;
  #query: Record<string, unknown> | undefined;
  /** The body is read or listened to, or there is one. */
  #isStream = false;
  #isEndHeld = false;
  #isOver = false;

  /** Aborted when the time for a response is over, or the client has disconnected. */
  // @ts-expect-error It is an accessor in recent versions of Node.js too, whatever their types say.
  override get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#abandoned) this.#controller.abort(this.#abandoned);
    return this.#controller.signal;
  }

  abandon(reason: Error): void {
    this.#abandoned ??= reason;
    this.#controller?.abort(this.#abandoned);
  }

  /** `http://host/path`, as proxies are asked, means the path (RFC 9112, section 3.2.2). */
  takeOriginForm(): void {
    const { url = "/" } = this;
    if (url.startsWith("/") || url === "*") return;
    const [authority] = /^https?:\/\/[^/?#]*/i.exec(url) ?? [];
    if (authority === undefined) return;
    const rest = url.slice(authority.length);
    this.url = rest.startsWith("/") ? rest : `/${rest}`;
  }

  get originalUrl(): string {
    return this.url ?? "/";
  }

  get baseUrl(): string {
    return "";
  }

  get path(): string {
    const url = this.originalUrl;
    const end = url.indexOf("?");
    return end < 0 ? url : url.slice(0, end);
  }

  get query(): Record<string, unknown> {
    const start = this.originalUrl.indexOf("?");
    return (this.#query ??= start < 0 ? {} : parseQuery(this.originalUrl.slice(start + 1)));
  }

  /** As of the one route there is, `*`. */
  get params(): Record<string, string> {
    return { 0: this.path };
  }

  /** The values of a header that proxies have written, the client's first. */
  #forwarded(name: string): string[] {
    const text = FunctionRequest.trustsProxies ? (this.headers[name]?.toString() ?? "") : "";
    return text.split(",").flatMap((each) => each.trim() || []);
  }

  get protocol(): string {
    const [forwarded] = this.#forwarded("x-forwarded-proto");
    if (forwarded !== undefined) return forwarded;
    return (this.socket as TLSSocket).encrypted ? "https" : "http";
  }

  get secure(): boolean {
    return this.protocol === "https";
  }

  get ip(): string | undefined {
    const [forwarded] = this.ips;
    if (forwarded !== undefined) return forwarded;
    // A socket for both families has the older in the clothes of the newer (RFC 4291 section 2.5.5.2).
    return this.socket.remoteAddress?.replace(/^::ffff:(?=\d+\.)/, "");
  }

  get ips(): string[] {
    return this.#forwarded("x-forwarded-for");
  }

  get host(): string | undefined {
    return this.#forwarded("x-forwarded-host")[0] ?? this.headers.host;
  }

  get hostname(): string | undefined {
    return this.host?.replace(/:\d+$/, "");
  }

  /** An address has none. */
  get subdomains(): string[] {
    const { hostname = "" } = this;
    return /^[\d.]+$|^\[/.test(hostname) ? [] : hostname.split(".").reverse().slice(2);
  }

  /** Express' application, of which there is only this much. */
  get app(): typeof application {
    application.settings["trust proxy"] ??= FunctionRequest.trustsProxies;
    return application;
  }

  set app(value: unknown) {
    Object.defineProperty(this, "app", { value, configurable: true, writable: true });
  }

  /** Google's framework names each call; here it is the id that the log has. */
  get executionId(): string {
    return this.get("function-execution-id")?.toString() ?? requestIdOf(this);
  }

  get xhr(): boolean {
    return this.get("x-requested-with")?.toString().toLowerCase() === "xmlhttprequest";
  }

  /** A header, in any case. */
  get(name: string): string | string[] | undefined {
    const key = name.toLowerCase();
    if (key === "referer" || key === "referrer")
      return this.headers["referrer"] ?? this.headers.referer;
    return this.headers[key];
  }

  header(name: string): string | string[] | undefined {
    return this.get(name);
  }

  /** The first of the given types that the body is of, such as `json` or `text/*`; false for none. */
  is(...types: (string | string[])[]): string | false {
    const contentType = this.headers["content-type"];
    if (contentType === undefined) return false;
    return types.flat().find((type) => matchesType(contentType, type)) ?? false;
  }

  /** The one of the given types that the client likes best; false when it wants none of them. */
  accepts(...types: (string | string[])[]): string | string[] | false {
    return acceptedTypes(this.headers.accept, types.flat());
  }

  acceptsLanguages(...languages: (string | string[])[]): string | string[] | false {
    return acceptedLanguages(this.headers["accept-language"], languages.flat());
  }

  acceptsEncodings(...encodings: (string | string[])[]): string | string[] | false {
    return acceptedEncodings(this.headers["accept-encoding"]?.toString(), encodings.flat());
  }

  acceptsCharsets(...charsets: (string | string[])[]): string | string[] | false {
    return acceptedCharsets(this.headers["accept-charset"]?.toString(), charsets.flat());
  }

  /** The parts that are asked for of so many bytes: -1 when there are none such, -2 when malformed. */
  range(size: number): Ranges | -1 | -2 | undefined {
    const { range } = this.headers;
    return range === undefined ? undefined : parseRanges(range, size);
  }

  /** Whether the client has what the response's validators stand for. */
  get fresh(): boolean {
    const { method, headers, res } = this;
    const isRead = method === "GET" || method === "HEAD";
    const isGood =
      res && ((res.statusCode >= 200 && res.statusCode < 300) || res.statusCode === 304);
    if (!isRead || !isGood) return false;
    return isFresh(headers, { etag: res.get("etag"), lastModified: res.get("last-modified") });
  }

  get stale(): boolean {
    return !this.fresh;
  }

  /**
   * The end of a request without a body is held back until it is read or listened to, which hardly any Function does:
   * all that a stream does to come to its end costs as much as the rest of a request.
   */
  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    this.#isEndHeld = chunk === null && !this.#isStream;
    if (this.#isEndHeld) return false;
    this.#isStream = true;
    return super.push(chunk, encoding);
  }

  override on(name: string, listener: Listener): this {
    this.#beStream();
    return super.on(name, listener);
  }

  override addListener(name: string, listener: Listener): this {
    return this.on(name, listener);
  }

  override prependListener(name: string, listener: Listener): this {
    this.#beStream();
    return super.prependListener(name, listener);
  }

  override read(size?: number): unknown {
    this.#beStream();
    return super.read(size);
  }

  override resume(): this {
    this.#beStream();
    return super.resume();
  }

  /** Of Node.js, which calls it when the answer is out: what was not read is thrown away. */
  _dump(): void {
    if (this.#isEndHeld) this.#isOver = true;
    else dump.call(this);
  }

  // @ts-expect-error It is an accessor, whatever its type says.
  override get readableEnded(): boolean {
    return this.#isOver || Reflect.get(IncomingMessage.prototype, "readableEnded", this);
  }

  #beStream(): void {
    if (this.#isStream) return;
    this.#isStream = true;
    if (this.#isEndHeld) super.push(null);
    if (this.#isOver) dump.call(this);
    this.#isEndHeld = this.#isOver = false;
  }
}

const dump = (IncomingMessage.prototype as unknown as { _dump: () => void })._dump;

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Listener = (...args: any[]) => void;
