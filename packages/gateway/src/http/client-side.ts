import { type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http";
import { type ServerHttp2Stream } from "node:http2";
import { type Socket } from "node:net";
import { type Readable } from "node:stream";

/** What the gateway uses of a client's request, whether it has come over HTTP/1.1 or HTTP/2. */
export interface ClientRequest extends Readable {
  method?: string | undefined;
  url?: string | undefined;
  headers: IncomingHttpHeaders;
  /** Names and values by turns; of HTTP/2 without pseudo-headers, and with `host`. */
  rawHeaders: string[];
  httpVersion: string;
  httpVersionMajor: number;
  httpVersionMinor: number;
  /** Of HTTP/2, to destroy it ends the stream, and not the connection. */
  socket: Socket;
  complete: boolean;
  /** Of HTTP/2 only: the connection that the stream is on. */
  connectionSocket?: Socket | undefined;
  /** Of HTTP/2 only. */
  stream?: ServerHttp2Stream;
}

/** And of the response to it. */
export interface ClientResponse {
  shouldKeepAlive: boolean;
  readonly statusCode: number;
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  /** Headers as an object, or names and values by turns. */
  writeHead(
    status: number,
    headers: OutgoingHttpHeaders | string[],
  ): { end(body?: string): unknown };
  flushHeaders(): void;
  /** A response of a head alone, which ends with it. Of HTTP/2 only: clients of gRPC distinguish it from one with an empty body. */
  respondWhole?(status: number, headers: string[]): void;
  /** False: no more before `drain`. */
  write(chunk: Buffer): boolean;
  addTrailers(trailers: Record<string, string | string[] | undefined>): void;
  end(body?: string): unknown;
  end(body: string, encoding: "latin1"): unknown;
  writeContinue(): void;
  writeEarlyHints(hints: Record<string, string | string[]>): void;
  /** Breaks it off, visibly for the client. */
  destroy(): unknown;
  once(event: "close" | "drain", listener: () => void): unknown;
}

/** Whether a body follows the head. */
export function hasBody({ headers, stream }: ClientRequest): boolean {
  if (stream) return !stream.endAfterHeaders;
  return Number(headers["content-length"] ?? 0) > 0 || headers["transfer-encoding"] !== undefined;
}
