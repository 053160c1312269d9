/** What the server says about a message, in the subject of its acknowledgement. */
export interface DeliveryInfo {
  position: number;
  /** When it was accepted, milliseconds since the epoch. */
  at: number;
  deliveryCount: number;
}

/**
 * `$JS.ACK.<stream>.<consumer>.<count>.<position>.<number>.<time>.<pending>`; with two more names after `ACK` where the servers have
 * domains and accounts (ADR-15 of NATS).
 */
export function deliveryOf(reply: string): DeliveryInfo {
  const parts = reply.split(".");
  const first = parts.length >= 11 ? 6 : 4;
  const [count, position, , nanoseconds = ""] = parts.slice(first);
  return {
    deliveryCount: Number(count),
    position: Number(position),
    at: Number(nanoseconds.slice(0, -6)),
  };
}

/** Asks the server to hand it out again, after so many milliseconds. */
export function nak(ms: number): string {
  return ms <= 0 ? "-NAK" : `-NAK ${JSON.stringify({ delay: Math.ceil(ms) * 1_000_000 })}`;
}
