/**
 * The one seam between Spry and an API server: `fetch`, and for small requests the cheaper `ask`. A real cluster is an HTTPS
 * transport; the embedded engine answers both itself, without a socket.
 *
 * A request's URL is absolute; a transport that has its own address ignores the origin.
 */
export interface Transport {
  (request: Request): Promise<Response>;
  /**
   * The same for a request whose response is read as a whole. `Request` and `Response` cost more than the work of reading or
   * writing a small object, and a process that needs neither does not load them. A transport without it is asked by `fetch`.
   */
  ask?: Ask | undefined;
}

export type Ask = (request: PlainRequest) => Promise<PlainResponse>;

export interface PlainRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface PlainResponse {
  readonly status: number;
  readonly text: string;
}

/** A transport of both ways, or of `fetch` alone where what it stands on has no other. */
export function transportOf(send: (request: Request) => Promise<Response>, ask?: Ask): Transport {
  return Object.assign(send, { ask });
}

/** Origin for requests whose transport knows the address itself. */
export const transportOrigin = "http://kubernetes.internal";
