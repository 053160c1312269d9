import { type RawData, WebSocket } from "ws";

export interface FunctionSocketOptions {
  gateway: URL;
  namespace: string;
  name: string;
  path: string;
  onOpen: () => void;
  /** The next message is read when the promise resolves. */
  onMessage: (message: { text?: string; bytes: number }) => Promise<void>;
  signal: AbortSignal;
}

const maxMessageBytes = 1024 ** 2;
/** A Function that may go to zero starts first. */
const openTimeoutMs = 310_000;
const maxUnsentBytes = 1024 ** 2;

/** A WebSocket to a Function, which its gateway leads there as any client's. */
export class FunctionSocket {
  readonly #socket: WebSocket;
  /** Resolves when it is closed; rejects with why it could not be opened, or was lost. */
  readonly closed: Promise<void>;

  constructor({
    gateway,
    namespace,
    name,
    path,
    onOpen,
    onMessage,
    signal,
  }: FunctionSocketOptions) {
    const socket = new WebSocket(`ws://127.0.0.1:${gateway.port || 80}${path}`, {
      headers: { host: `${name}.${namespace}.localhost` },
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
        reject(
          new Error(`the Function responded with ${response.statusCode} instead of a WebSocket`),
        );
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
