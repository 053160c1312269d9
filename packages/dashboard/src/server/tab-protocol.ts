/** What travels over the WebSocket of a tab, as JSON, one object per message. The server and the page import this file. */

export type ClientMessage =
  /** The first message; sent again with a renewed login. This way the token is in no URL or header that might be logged. */
  | { type: "login"; token: string }
  /** A GET of the API server whose response is a stream; the browser chooses `id`. */
  | { type: "open"; id: number; path: string }
  /** A WebSocket to a Function, at its gateway. */
  | { type: "connect"; id: number; namespace: string; name: string; path: string }
  /** A message to the Function. */
  | { type: "say"; id: number; text: string }
  | { type: "close"; id: number };

export type ServerMessage =
  | { type: "welcome" }
  | { type: "head"; id: number; status: number; contentType: string }
  | { type: "data"; id: number; text: string }
  /** From a Function's WebSocket; one that is not text has only its size. */
  | { type: "message"; id: number; text?: string; bytes: number }
  | { type: "end"; id: number; error?: string };

/** Why the server closes: codes of RFC 6455 section 7.4.2, for private use. */
export const socketClosed = { login: 4401, protocol: 4400, busy: 4503 } as const;
