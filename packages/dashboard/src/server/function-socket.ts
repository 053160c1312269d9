import { type RawData, WebSocket } from "ws";
import { type WebSocketAccess } from "@spry/kube";

export interface FunctionSocketOptions {
  /** Where it is, by a gateway or by way of the API server. */
  access: WebSocketAccess;
  onOpen: () => void;
  /** The next message is read when the promise resolves. */
  onMessage: (message: { text?: string; bytes: number }) => Promise<void>;
  signal: AbortSignal;
}

const maxMessageBytes = 1024 ** 2;
/** A Function that may go to zero starts first. */
const openTimeoutMs = 310_000;
const maxUnsentBytes = 1024 ** 2;

interface Target {
  namespace: string;
  /** The Function's name. */
  name: string;
  path: string;
}

/** At a gateway of this machine, as any client's. */
export const throughGateway = (
  gateway: URL,
  { namespace, name, path }: Target,
): WebSocketAccess => ({
  url: `ws://127.0.0.1:${gateway.port || 80}${path}`,
  headers: { host: `${name}.${namespace}.localhost` },
  tls: { rejectUnauthorized: true },
});

/** At the API server, which leads it to the Function's Service for users with the right to reach that. */
export const proxyPath = ({ namespace, name, path }: Target): string =>
  `/api/v1/namespaces/${namespace}/services/${name}:80/proxy${path}`;

/** A WebSocket to a Function. */
export class FunctionSocket {
  readonly #socket: WebSocket;
  /** Resolves when it is closed; rejects with why it could not be opened, or was lost. */
  readonly closed: Promise<void>;

  constructor({ access, onOpen, onMessage, signal }: FunctionSocketOptions) {
    const socket = new WebSocket(access.url, {
      headers: access.headers,
      ...access.tls,
      handshakeTimeout: openTimeoutMs,
      maxPayload: maxMessageBytes,
      perMessageDeflate: false,
      followRedirects: false,
    });
    this.#socket = socket;
    socket.on("open", onOpen);
    socket.on("message", (data, isBinary) => {
      const bytes = sizeOf(data);
      socket.pause();
      void onMessage(isBinary ? { bytes } : { text: textOf(data), bytes }).finally(() =>
        socket.resume(),
      );
    });
    this.closed = new Promise((resolve, reject) => {
      socket.on("unexpected-response", (_, response) => {
        const { statusCode } = response;
        // With 403 the API server may have answered itself.
        const why = statusCode === 403 ? ", or you may not reach its Service" : "";
        reject(new Error(`the Function responded with ${statusCode} instead of a WebSocket${why}`));
        response.destroy();
      });
      socket.on("error", reject);
      socket.on("close", (code, reason) => {
        const text = reason.toString("utf8");
        // 1000 and 1005: closed on purpose, with and without a code.
        if (code === 1000 || code === 1005) resolve();
        else reject(new Error(`closed with ${code}${text ? `: ${text}` : ""}`));
      });
    });
    signal.addEventListener("abort", () => socket.terminate(), { once: true });
  }

  /** Returns false when it is not open, or when the Function does not read what was sent before. */
  send(text: string): boolean {
    if (this.#socket.readyState !== WebSocket.OPEN) return false;
    if (this.#socket.bufferedAmount > maxUnsentBytes) return false;
    this.#socket.send(text);
    return true;
  }

  close(): void {
    this.#socket.close(1000);
  }
}

const sizeOf = (data: RawData): number =>
  Array.isArray(data) ? data.reduce((sum, { length }) => sum + length, 0) : data.byteLength;

const textOf = (data: RawData): string =>
  (Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer)).toString("utf8");
