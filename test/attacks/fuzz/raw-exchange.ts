/** One request as bytes on a connection of its own, and what comes back: no client library repairs what it sends. */
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export interface Target {
  port: number;
  /** PEM; without it, plain HTTP. */
  ca?: string;
}

export interface RawRequest {
  bytes: Buffer;
  /** Where the bytes are cut into writes. */
  cuts: number[];
  /** Leaves without waiting, after this many bytes. */
  leavesAfter?: number;
}

export interface RawResponse {
  /** 0 when the connection ended without a response. */
  status: number;
  text: string;
  /** Milliseconds from the last byte sent to the end, or to the head of a stream that goes on. */
  ms: number;
  hung: boolean;
}

/** How long a server may take for a response's head or the connection's end. */
const patienceMs = 30_000;
/** How long a whole request may take, at the least, before its connection is half closed. */
const enoughMs = 1_000;
/** A stream whose head is there (a watch, an upgrade) is left when it has been quiet for this long. */
const quietMs = 150;
const maxKept = 65_536;

export function exchange(target: Target, request: RawRequest): Promise<RawResponse> {
  const { port, ca } = target;
  return new Promise((resolve) => {
    const socket: Socket = ca
      ? connectTls({ host: "127.0.0.1", port, ca, servername: "localhost" })
      : connectPlain({ host: "127.0.0.1", port });
    let text = "";
    let start = performance.now();
    let quiet: NodeJS.Timeout | undefined;
    let more: NodeJS.Timeout | undefined;
    const finish = (hung = false) => {
      clearTimeout(timer);
      clearTimeout(more);
      clearTimeout(quiet);
      socket.destroy();
      const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1] ?? 0);
      resolve({ status, text, ms: performance.now() - start, hung });
    };
    const timer = setTimeout(() => finish(true), patienceMs);
    socket.on("error", () => finish());
    socket.on("close", () => finish());
    socket.on("data", (chunk: Buffer) => {
      if (text.length < maxKept) text += chunk.toString("latin1");
      if (isComplete(text)) return finish();
      clearTimeout(quiet);
      if (text.includes("\r\n\r\n")) quiet = setTimeout(() => finish(), quietMs);
    });
    socket.on(ca ? "secureConnect" : "connect", () => {
      const { bytes, cuts, leavesAfter } = request;
      const end = Math.min(leavesAfter ?? bytes.length, bytes.length);
      let from = 0;
      for (const cut of [...cuts.filter((each) => each < end).sort((a, b) => a - b), end]) {
        socket.write(bytes.subarray(from, cut));
        from = cut;
      }
      start = performance.now();
      if (leavesAfter !== undefined) setImmediate(() => finish());
      // A server that waits for more learns that there is none, and has to end.
      else more = setTimeout(() => socket.end(), enoughMs);
    });
  });
}

/** Whether this is one whole response with a length, or with chunks. */
function isComplete(text: string): boolean {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const head = text.slice(0, end).toLowerCase();
  const length = /\r\ncontent-length: (\d+)/.exec(head)?.[1];
  if (length !== undefined) return text.length >= end + 4 + Math.min(Number(length), maxKept);
  return head.includes("chunked") && text.endsWith("\r\n0\r\n\r\n");
}
