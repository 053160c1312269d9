import { delegateTo } from "./delegate.ts";

type NativeResponse = globalThis.Response;
type NativeConstructor = typeof globalThis.Response;

/** What most handlers answer with, kept as it was given. */
export interface PlainResponse {
  status: number;
  statusText: string;
  /** Names in lower case. */
  headers: [string, string][];
  body: string | Uint8Array | null;
}

/** Marks an object of ours that is made of a native one. */
class Wrapped {
  readonly native: NativeResponse;

  constructor(object: NativeResponse) {
    this.native = object;
  }
}

/** Whether it is one of ours. */
export let isResponse: (value: unknown) => value is Response;
/** The native one behind one of ours, from now on the one that counts; others as they are. */
export let toNativeResponse: (value: object) => NativeResponse;
/** What can be sent without reading a stream; undefined when there is one, or it has been read. */
export let toPlainResponse: (value: Response) => PlainResponse | undefined;

/**
 * The global `Response` of a Function. As long as it is a text or bytes with plain headers, and only
 * returned, it is these and nothing else; for all that goes further there is a native one behind it.
 */
export class Response {
  #plain: PlainResponse | undefined;
  #native: NativeResponse | undefined;

  constructor(body?: unknown, init?: unknown) {
    if (body instanceof Wrapped) this.#native = body.native;
    else {
      this.#plain = plainOf(body, init);
      if (!this.#plain) this.#native = new (nativeClass())(body as string, init as ResponseInit);
    }
  }

  static json(data: unknown, init?: unknown): Response {
    const body: string | undefined = JSON.stringify(data);
    const plain = body === undefined ? undefined : plainOf(body, init, "application/json");
    if (!plain) return new Response(new Wrapped(nativeClass().json(data, init as ResponseInit)));
    const response = new Response();
    response.#plain = plain;
    return response;
  }

  static redirect(...args: [string, number?]): Response {
    return new Response(new Wrapped(nativeClass().redirect(...args)));
  }

  static error(): Response {
    return new Response(new Wrapped(nativeClass().error()));
  }

  get status(): number {
    return this.#native?.status ?? this.#plain?.status ?? 200;
  }

  get statusText(): string {
    return this.#native?.statusText ?? this.#plain?.statusText ?? "";
  }

  get ok(): boolean {
    return this.status >= 200 && this.status <= 299;
  }

  get bodyUsed(): boolean {
    return this.#native?.bodyUsed ?? false;
  }

  clone(): Response {
    if (this.#native) return new Response(new Wrapped(this.#native.clone()));
    const response = new Response();
    const { headers = [], ...rest } = this.#plain ?? {};
    response.#plain = { status: 200, statusText: "", body: null, ...rest, headers: [...headers] };
    return response;
  }

  static {
    isResponse = (value): value is Response =>
      typeof value === "object" && value !== null && #plain in value;

    toNativeResponse = (value) => {
      if (!isResponse(value)) return value as NativeResponse;
      const { status, statusText, headers, body } = value.#plain ?? nothing;
      value.#native ??= new (nativeClass())(body as string, { status, statusText, headers });
      return value.#native;
    };

    toPlainResponse = (value) => {
      if (!value.#native || !value.#plain) return value.#plain;
      const { bodyUsed, body, headers } = value.#native;
      if (bodyUsed || body?.locked) return undefined;
      return { ...value.#plain, headers: [...headers] };
    };
  }
}

const nothing: PlainResponse = { status: 200, statusText: "", headers: [], body: null };

function nativeClass(): NativeConstructor {
  const native = globalThis.Response;
  // For who asks whether one of ours is an instance of it.
  if (Object.getPrototypeOf(Response.prototype) !== native.prototype)
    Object.setPrototypeOf(Response.prototype, native.prototype);
  return native;
}

delegateTo(Response, {
  name: "Response",
  members: ["type", "url", "redirected", "headers", "body"],
  methods: ["arrayBuffer", "blob", "bytes", "formData", "json", "text"],
  toNative: toNativeResponse,
  native: nativeClass,
});

const nullBodyStatuses = new Set([204, 205, 304]);
const reasonPattern = /^[\t\x20-\x7e\x80-\xff]*$/;
const namePattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** No white space at the ends: the native class takes it away. */
const valuePattern = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;

/** Undefined for all that only the native class can judge: it throws, or takes it. */
function plainOf(body: unknown, init: unknown, type?: string): PlainResponse | undefined {
  const plainBody = plainBodyOf(body);
  if (plainBody === undefined) return undefined;
  const defaultType = type ?? (typeof plainBody === "string" ? textType : undefined);
  if (init === undefined) {
    const headers: [string, string][] = defaultType ? [["content-type", defaultType]] : [];
    return { status: 200, statusText: "", headers, body: plainBody };
  }
  if (init === null || Object.getPrototypeOf(init) !== Object.prototype) return undefined;
  const { status = 200, statusText = "", headers: given } = init as Record<string, unknown>;
  if (typeof status !== "number" || !(status >= 200 && status <= 599)) return undefined;
  if (!Number.isInteger(status) || (plainBody !== null && nullBodyStatuses.has(status)))
    return undefined;
  if (typeof statusText !== "string" || !reasonPattern.test(statusText)) return undefined;
  const headers = plainHeadersOf(given);
  if (!headers) return undefined;
  if (defaultType && !headers.some(([name]) => name === "content-type"))
    headers.push(["content-type", defaultType]);
  return { status, statusText, headers, body: plainBody };
}

const textType = "text/plain;charset=UTF-8";

/** Bytes are copied: the handler may use its buffer again. */
function plainBodyOf(body: unknown): string | Uint8Array | null | undefined {
  if (typeof body === "string") return body;
  if (body === undefined || body === null) return null;
  return body instanceof Uint8Array && body.buffer instanceof ArrayBuffer
    ? Uint8Array.prototype.slice.call(body)
    : undefined;
}

function plainHeadersOf(given: unknown): [string, string][] | undefined {
  if (given === undefined) return [];
  if (given === null || typeof given !== "object") return undefined;
  if (Object.getPrototypeOf(given) !== Object.prototype) return undefined;
  const headers: [string, string][] = [];
  for (const key of Reflect.ownKeys(given)) {
    const value = (given as Record<string | symbol, unknown>)[key];
    const text = typeof value === "number" ? String(value) : value;
    if (typeof key !== "string" || typeof text !== "string") return undefined;
    const name = key.toLowerCase();
    if (!namePattern.test(key) || !valuePattern.test(text)) return undefined;
    if (headers.some(([other]) => other === name)) return undefined;
    headers.push([name, text]);
  }
  return headers;
}
