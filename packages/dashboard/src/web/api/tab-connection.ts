/** The one WebSocket of this tab (server/tab-socket.ts): it reconnects by itself, and its streams end when the connection does. */
import { effect, signal } from "@preact/signals";
import { type ClientMessage, type ServerMessage, socketClosed } from "../../server/tab-protocol.ts";
import { currentToken, isLoggedIn, loginEnded } from "../session/login.ts";

export type ConnectionState = "connecting" | "connected" | "lost";
export const connectionState = signal<ConnectionState>("connecting");

interface Stream {
  onHead(status: number, contentType: string): void;
  onData(text: string): void;
  /** Of a Function's WebSocket; one that is not text has only its size. */
  onMessage?(message: { text?: string; bytes: number }): void;
  onEnd(error?: string): void;
}

const firstRetryMs = 250;
const maxRetryMs = 5_000;

let socket: WebSocket | undefined;
let isWelcome = false;
let retryMs = firstRetryMs;
let nextId = 1;
const streams = new Map<number, Stream>();
/** Opened while there was no connection. */
const waiting = new Map<number, string>();

effect(() => {
  if (isLoggedIn.value) connect();
  else socket?.close();
});
// A laptop that wakes up does not wait for the next attempt.
addEventListener("online", () => connect());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) connect();
});

export interface Conversation {
  say(text: string): void;
  close(): void;
}

/** A WebSocket to a Function. It opens when `onHead` is called; without a connection to the server it ends at once. */
export function openConversation(
  target: { namespace: string; name: string; path: string },
  stream: Stream,
): Conversation {
  const id = nextId++;
  if (!isWelcome) {
    stream.onEnd("the connection to the dashboard’s server is lost");
    return { say: () => {}, close: () => {} };
  }
  streams.set(id, stream);
  send({ type: "connect", id, ...target });
  return {
    say: (text) => send({ type: "say", id, text }),
    close: () => send({ type: "close", id }),
  };
}

/** A GET whose response is a stream; the function returned ends it. */
export function openStream(path: string, stream: Stream): () => void {
  const id = nextId++;
  streams.set(id, stream);
  if (isWelcome) send({ type: "open", id, path });
  else waiting.set(id, path);
  return () => {
    if (!streams.delete(id)) return;
    if (!waiting.delete(id)) send({ type: "close", id });
  };
}

function connect(): void {
  if (!isLoggedIn.value || socket) return;
  const opened = new WebSocket(`${location.origin.replace(/^http/, "ws")}/socket`);
  socket = opened;
  let token = currentToken();
  opened.addEventListener("open", () => send({ type: "login", token: (token = currentToken()) }));
  opened.addEventListener("message", ({ data }: MessageEvent<string>) => {
    receive(JSON.parse(data) as ServerMessage);
  });
  opened.addEventListener("close", ({ code }) => {
    socket = undefined;
    isWelcome = false;
    connectionState.value = "lost";
    for (const [id, stream] of streams) {
      if (waiting.has(id)) continue;
      streams.delete(id);
      stream.onEnd("the connection was lost");
    }
    // Of the login before, it says nothing about the present one.
    if (code === socketClosed.login && token === currentToken()) return loginEnded();
    setTimeout(connect, retryMs);
    retryMs = Math.min(retryMs * 2, maxRetryMs);
  });
}

function receive(message: ServerMessage): void {
  if (message.type === "welcome") {
    isWelcome = true;
    retryMs = firstRetryMs;
    connectionState.value = "connected";
    for (const [id, path] of waiting) send({ type: "open", id, path });
    return waiting.clear();
  }
  const stream = streams.get(message.id);
  if (message.type === "head") stream?.onHead(message.status, message.contentType);
  else if (message.type === "data") stream?.onData(message.text);
  else if (message.type === "message") stream?.onMessage?.(message);
  else {
    streams.delete(message.id);
    stream?.onEnd(message.error);
  }
}

function send(message: ClientMessage): void {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}
