import { type ServerResponse } from "node:http";

/** As long as Python's: a client that reads again within that time has had a bad connection. */
export const patienceMs = 120_000;

/**
 * Breaks the connection off when nothing of what waits for the client has gone for so long: it would hold its handler, and
 * a place among those that are let through, for good. An answer that has nothing to say meanwhile goes on.
 */
export function endWhenUnread(response: ServerResponse, ms: number): void {
  response.setTimeout(ms, () => {
    if ((response.socket?.writableLength ?? 0) > 0) response.destroy();
  });
}
