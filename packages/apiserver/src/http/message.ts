import { type IncomingMessage, type ServerResponse } from "node:http";
import { type ByteSource, webStreamOf } from "./byte-source.ts";
import { ListText } from "./list-text.ts";
import { MadeBody } from "./made-body.ts";

/**
 * A request as handlers look at it. `Request` is one; what comes over a socket is not made into a `Request`
 * first, for that costs as much as writing a small object.
 */
export interface HttpRequest {
  readonly method: string;
  /** Absolute. */
  readonly url: string;
  readonly headers: { get(name: string): string | null };
  /** Aborted when the client no longer waits for the response. */
  readonly signal: AbortSignal;
  text(): Promise<string>;
  arrayBuffer(): Promise<ArrayBufferLike>;
}

const noBody = Buffer.alloc(0);

/** A request from a socket, its body read. */
export class IncomingRequest implements HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: HttpRequest["headers"];
  readonly #body: Buffer;
  readonly #outgoing: ServerResponse | undefined;
  #signal: AbortSignal | undefined;

  /** Without `outgoing` the signal is never aborted. */
  constructor(incoming: IncomingMessage, body: Buffer = noBody, outgoing?: ServerResponse) {
    const { method = "GET", url = "/", headers } = incoming;
    this.method = method;
    this.url = `https://kubernetes${url.startsWith("/") ? "" : "/"}${url}`;
    this.headers = {
      get(name) {
        const value = headers[name];
        return typeof value === "string" ? value : null;
      },
    };
    this.#body = body;
    this.#outgoing = outgoing;
  }

  /** Made when it is asked for: few requests take long enough to be given up. */
  get signal(): AbortSignal {
    if (this.#signal) return this.#signal;
    const abort = new AbortController();
    if (this.#outgoing?.closed) abort.abort();
    else this.#outgoing?.once("close", () => abort.abort());
    return (this.#signal = abort.signal);
  }

  text(): Promise<string> {
    return Promise.resolve(this.#body.toString());
  }

  arrayBuffer(): Promise<ArrayBufferLike> {
    const { buffer, byteOffset, length } = this.#body;
    return Promise.resolve(buffer.slice(byteOffset, byteOffset + length));
  }
}

/** A body of which only so much leaves its source as the client has room for. */
export class PacedBody {
  readonly source: ByteSource;

  constructor(source: ByteSource) {
    this.source = source;
  }
}

export type HttpBody =
  | string
  | ListText
  | Uint8Array<ArrayBuffer>
  | ReadableStream<Uint8Array>
  | PacedBody
  | MadeBody
  | null;

/** By their names in lower case; several values where clients expect them one by one. */
export type HttpHeaders = Record<string, string | string[]>;

export interface HttpResponseInit {
  status?: number;
  headers?: HttpHeaders;
}

/** An answer as handlers make it; it becomes a `Response` only for callers in this process. */
export class HttpResponse {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly body: HttpBody;
  /**
   * Of an answer that refers to objects as they are now. To be called when it begins to leave, and what that returns when it has
   * left; `giveUp` is called when what has changed since takes too much room.
   */
  pin: ((giveUp: () => void) => () => void) | undefined;

  constructor(body: HttpBody, { status = 200, headers = {} }: HttpResponseInit = {}) {
    this.status = status;
    this.headers = headers;
    this.body = body;
  }

  /** The same answer in another form. */
  with(body: HttpBody, contentType: string): HttpResponse {
    const headers = { ...this.headers, "content-type": contentType };
    const response = new HttpResponse(body, { status: this.status, headers });
    response.pin = this.pin;
    return response;
  }

  toWeb(): Response {
    const headers = new Headers();
    for (const [name, values] of Object.entries(this.headers)) {
      for (const value of typeof values === "string" ? [values] : values)
        headers.append(name, value);
    }
    // An aggregated server's: its body is a stream, which `Response` refuses even when nothing is in it.
    const body = withoutBody.has(this.status) ? null : webBodyOf(this.body);
    return new Response(body, { status: this.status, headers });
  }
}

/** The whole of a body as text, of a stream until its end. */
export async function textOf(body: HttpBody): Promise<string> {
  if (typeof body === "string") return body;
  if (body instanceof ListText) return body.toString();
  return new Response(webBodyOf(body)).text();
}

const withoutBody: ReadonlySet<number> = new Set([204, 205, 304]);

function webBodyOf(body: HttpBody): BodyInit | null {
  if (body instanceof ListText) return body.toBytes();
  return body instanceof PacedBody || body instanceof MadeBody ? webStreamOf(body.source) : body;
}
