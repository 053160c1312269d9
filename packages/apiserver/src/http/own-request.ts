import { type PlainRequest } from "@spry/kube";
import { type HttpRequest } from "./message.ts";

const neverAborted = new AbortController().signal;

/** A request of this process, which needs no socket and no `Request`. */
export class OwnRequest implements HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: HttpRequest["headers"];
  readonly signal: AbortSignal;
  readonly #body: string;

  constructor({ method, path, headers, body = "", signal = neverAborted }: PlainRequest) {
    this.method = method;
    this.url = `https://kubernetes${path}`;
    this.headers = { get: (name) => headers[name] ?? null };
    this.signal = signal;
    this.#body = body;
  }

  text(): Promise<string> {
    return Promise.resolve(this.#body);
  }

  arrayBuffer(): Promise<ArrayBufferLike> {
    const { buffer, byteOffset, length } = Buffer.from(this.#body);
    return Promise.resolve(buffer.slice(byteOffset, byteOffset + length));
  }
}
