import {
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse,
  STATUS_CODES,
} from "node:http";
import { type FunctionRequest } from "./function-request.ts";
import { mediaTypeOf, withCharset } from "./media-type.ts";
import { formatCookie, type CookieOptions } from "./set-cookie.ts";

/** The contract lets pages of every origin read every answer, unless the Function's owner says no. */
const anyOrigin = Object.freeze({ "Access-Control-Allow-Origin": "*" });

type HeaderValue = OutgoingHttpHeader | boolean;

/** `event.extensions.response`: Node.js' response with the members of Express' that Functions use. */
export class FunctionResponse extends ServerResponse<FunctionRequest> {
  /** Of the process: it has one Function. */
  static cors = true;
  #locals: Record<string, unknown> | undefined;

  get locals(): Record<string, unknown> {
    return (this.#locals ??= {});
  }

  /**
   * Every answer's head goes through here, also where nobody calls it. Adding the header now is a
   * tenth cheaper, over a whole request, than setting it beforehand.
   */
  override writeHead(status: number, ...rest: unknown[]): this {
    const isSet = !FunctionResponse.cors || this.hasHeader("access-control-allow-origin");
    if (!isSet && rest.length === 0) return super.writeHead(status, anyOrigin);
    if (!isSet) this.set(anyOrigin);
    return super.writeHead(status, ...(rest as [OutgoingHttpHeaders]));
  }

  status(code: number): this {
    this.statusCode = code;
    return this;
  }

  /** One header, or several as an object. A text's `Content-Type` gets its charset. */
  set(name: string | Record<string, HeaderValue>, value?: HeaderValue): this {
    if (typeof name === "object") {
      for (const [key, each] of Object.entries(name)) this.set(key, each);
      return this;
    }
    const text = Array.isArray(value) ? value.map(String) : String(value);
    const isType = name.toLowerCase() === "content-type" && typeof text === "string";
    this.setHeader(name, isType ? withCharset(text) : text);
    return this;
  }

  header(name: string | Record<string, HeaderValue>, value?: HeaderValue): this {
    return this.set(name, value);
  }

  get(name: string): OutgoingHttpHeader | undefined {
    return this.getHeader(name);
  }

  append(name: string, value: string | string[]): this {
    this.appendHeader(name, value);
    return this;
  }

  vary(field: string | string[]): this {
    return this.append("vary", field);
  }

  type(name: string): this {
    return this.set("content-type", mediaTypeOf(name));
  }

  contentType(name: string): this {
    return this.type(name);
  }

  /** Ends with a body: text as HTML unless a type is set, bytes as they are, anything else as JSON. */
  send(body?: unknown): this {
    if (typeof body === "string") {
      if (!this.hasHeader("content-type")) this.type("html");
      return this.end(body);
    }
    if (body === undefined || body === null) return this.end();
    if (body instanceof Uint8Array) {
      if (!this.hasHeader("content-type")) this.type("bin");
      return this.end(body);
    }
    return this.json(body);
  }

  json(body?: unknown): this {
    const text = JSON.stringify(body);
    if (!this.hasHeader("content-type"))
      this.setHeader("content-type", "application/json; charset=utf-8");
    return this.end(text);
  }

  sendStatus(code: number): this {
    return this.status(code)
      .type("txt")
      .send(STATUS_CODES[code] ?? String(code));
  }

  location(url: string): this {
    return this.set("location", encodeUrl(url));
  }

  /** `redirect(url)` or `redirect(status, url)`. */
  redirect(first: number | string, second?: string): this {
    const [status, url] = typeof first === "number" ? [first, second ?? "/"] : [302, first];
    return this.status(status)
      .location(url)
      .type("txt")
      .end(`${STATUS_CODES[status]}. Redirecting to ${url}`);
  }

  cookie(name: string, value: unknown, options: CookieOptions = {}): this {
    const text = typeof value === "object" ? `j:${JSON.stringify(value)}` : String(value);
    return this.append("set-cookie", formatCookie(name, text, { path: "/", ...options }));
  }

  clearCookie(name: string, options: CookieOptions = {}): this {
    return this.cookie(name, "", { ...options, expires: new Date(1), maxAge: undefined });
  }

  attachment(filename?: string): this {
    if (filename === undefined) return this.set("content-disposition", "attachment");
    const ascii = filename.replace(/[^\x20-\x7e]|["\\]/g, "?");
    const extended = ascii === filename ? "" : `; filename*=UTF-8''${encodeURIComponent(filename)}`;
    return this.type(filename).set(
      "content-disposition",
      `attachment; filename="${ascii}"${extended}`,
    );
  }
}

/** Leaves what is encoded already. */
function encodeUrl(url: string): string {
  return encodeURI(url).replaceAll(/%25([0-9a-f]{2})/gi, "%$1");
}
