import { type OutgoingHttpHeader, STATUS_CODES } from "node:http";
import { basename } from "node:path";
import { type SendFileOptions } from "./express/send-file.ts";
import { FramedResponse } from "./framed-response.ts";
import { type FunctionRequest } from "./function-request.ts";
import { logError } from "./log.ts";
import { mediaTypeOf, withCharset } from "./media-type.ts";
import { type RequestError } from "./request-error.ts";
import { formatCookie, type CookieOptions } from "./set-cookie.ts";

type HeaderValue = OutgoingHttpHeader | boolean;

/** `event.extensions.response`: Node.js' response with the members of Express' that Functions use. */
export class FunctionResponse extends FramedResponse {
  /** It is being answered, by a file that is still to be read. */
  answersLater = false;
  #locals: Record<string, unknown> | undefined;

  get locals(): Record<string, unknown> {
    return (this.#locals ??= {});
  }

  get app(): unknown {
    return this.req.app;
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

  /** Adds to what the answer depends on, each field once. */
  vary(field: string | string[]): this {
    const known = String(this.getHeader("vary") ?? "").split(/\s*,\s*/);
    const added = [field].flat().flatMap((each) => each.split(/\s*,\s*/));
    const isNew = (name: string, index: number, all: string[]) =>
      name !== "" && all.findIndex((each) => each.toLowerCase() === name.toLowerCase()) === index;
    const all = [...known, ...added].filter(isNew);
    return this.set("vary", all.includes("*") ? "*" : all.join(", "));
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

  /** JSON as a script that calls the function named by `?callback=`; plain JSON without. */
  jsonp(body?: unknown): this {
    const { callback } = this.req.query;
    const name = (Array.isArray(callback) ? callback[0] : callback) as unknown;
    if (typeof name !== "string" || name === "") return this.json(body);
    const text = (JSON.stringify(body) ?? "")
      .replaceAll("\u2028", "\\u2028")
      .replaceAll("\u2029", "\\u2029");
    const called = name.replaceAll(/[^[\]\w$.]/g, "");
    // The comment, and the type that browsers must not guess, keep others' content from being run.
    return this.set("x-content-type-options", "nosniff")
      .type("js")
      .end(`/**/ typeof ${called} === 'function' && ${called}(${text});`);
  }

  /** Calls the one of the functions by media type that the client likes best, or `default`, or is 406. */
  format(formats: Record<string, (request: FunctionRequest, response: this) => unknown>): this {
    const types = Object.keys(formats).filter((type) => type !== "default");
    const type = types.length > 0 && this.req.accepts(types);
    this.vary("Accept");
    if (typeof type === "string") {
      this.type(type);
      formats[type]?.(this.req, this);
    } else if (formats["default"]) formats["default"](this.req, this);
    else this.sendStatus(406);
    return this;
  }

  /** `links({ next: url })`: the `Link` header, of several calls together. */
  links(links: Record<string, string | string[]>): this {
    const list = Object.entries(links).flatMap(([relation, urls]) =>
      [urls].flat().map((url) => `<${url}>; rel="${relation}"`),
    );
    const known = this.getHeader("link");
    return this.set("link", [...(known === undefined ? [] : [String(known)]), ...list].join(", "));
  }

  /**
   * `sendFile(path[, options][, callback])`: a file, by an absolute path or below `options.root`. What goes
   * wrong is the callback's, or the answer.
   */
  sendFile(path: string, ...rest: unknown[]): void {
    const options = rest.find((each) => typeof each === "object" && each !== null) ?? {};
    const finish = rest.find((each) => typeof each === "function") as
      | ((error?: unknown) => void)
      | undefined;
    this.answersLater = true;
    void this.#sendFile(path, options, finish);
  }

  async #sendFile(path: string, options: SendFileOptions, finish?: (error?: unknown) => void) {
    try {
      const { sendFile } = await import("./express/send-file.ts");
      await sendFile(this, path, options);
      finish?.();
    } catch (error) {
      this.answersLater = false;
      if (finish) finish(error);
      else this.#refuseFile(error);
    }
  }

  #refuseFile(error: unknown): void {
    if (this.headersSent) return void this.destroy();
    const { status = 500, message } = error as Partial<RequestError>;
    if (status === 500) logError("sending a file", error);
    this.status(status).type("txt");
    this.end(status === 500 ? "Internal server error" : message);
  }

  /** `download(path[, filename][, options][, callback])`: a file to be saved under that name. */
  download(path: string, ...rest: unknown[]): void {
    const [filename] = rest.filter((each) => typeof each === "string");
    this.attachment(filename ?? basename(path));
    this.sendFile(path, ...rest.filter((each) => typeof each !== "string"));
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
    if (options.signed)
      throw new Error("signed cookies need a secret, which Express' cookie-parser would have");
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
