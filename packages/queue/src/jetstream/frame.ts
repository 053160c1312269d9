import { type Message, type NewMessage } from "../queue.ts";

/** What is kept besides the bytes; in the payload, because headers of NATS hold neither every character nor enough of them. */
interface Head {
  subject: string;
  key: string;
  attributes: Readonly<Record<string, string>>;
  notBefore?: number | undefined;
  /** Of a dead letter. */
  dead?: DeadHead;
}

export interface DeadHead {
  reason: string;
  message: string;
  attempts: number;
  position: number;
  at: number;
}

/** Four bytes with the length of the head, the head as JSON, the body. */
export function encode({ subject, key, attributes, notBefore, body }: NewMessage, dead?: DeadHead) {
  const head: Head = { subject, key, attributes, notBefore, ...(dead ? { dead } : {}) };
  const text = JSON.stringify(head);
  const length = Buffer.byteLength(text);
  const frame = Buffer.allocUnsafe(4 + length + body.length);
  frame.writeUInt32BE(length, 0);
  frame.write(text, 4);
  frame.set(body, 4 + length);
  return frame;
}

/** Undefined where something else has written to the stream. */
export function decode(
  data: Uint8Array,
  position: number,
  at: number,
): { message: Message; dead: DeadHead | undefined } | undefined {
  try {
    const frame = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    const end = 4 + frame.readUInt32BE(0);
    if (end > frame.length) return undefined;
    const { dead, ...head } = JSON.parse(frame.toString("utf8", 4, end)) as Head;
    if (typeof head.subject !== "string" || typeof head.key !== "string") return undefined;
    // A copy: the client's buffer holds others, too.
    return { message: { ...head, body: Buffer.from(frame.subarray(end)), position, at }, dead };
  } catch {
    return undefined;
  }
}
