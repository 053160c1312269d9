/** The part of DNS messages (RFC 1035, section 4) that a name server for Services needs. */

export const recordTypes = {
  A: 1,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  AAAA: 28,
  SRV: 33,
  ANY: 255,
} as const;
export const responseCodes = { none: 0, formatError: 1, serverFailure: 2, nameError: 3 } as const;

const headerSize = 12;
const maxName = 255;
const internet = 1;

export interface Question {
  id: number;
  recursionDesired: boolean;
  /** In lower case, without the final dot. */
  name: string;
  type: number;
  /** Where the question ends in the message. */
  end: number;
}

export interface Answer {
  name: string;
  type: number;
  ttl: number;
  data: Buffer;
}

/** A query with one question; undefined for anything else. */
export function readQuestion(message: Buffer): Question | undefined {
  if (message.length < headerSize + 5) return undefined;
  const flags = message.readUInt16BE(2);
  const isQuery = (flags & 0x8000) === 0 && (flags & 0x7800) === 0;
  if (!isQuery || message.readUInt16BE(4) !== 1) return undefined;
  const labels: string[] = [];
  let at = headerSize;
  for (;;) {
    const length = message[at];
    // Questions have nothing before them that a name could point to.
    if (length === undefined || length > 63 || at - headerSize > maxName) return undefined;
    at++;
    if (length === 0) break;
    labels.push(message.toString("latin1", at, at + length).toLowerCase());
    at += length;
  }
  if (at + 4 > message.length) return undefined;
  return {
    id: message.readUInt16BE(0),
    recursionDesired: (flags & 0x0100) !== 0,
    name: labels.join("."),
    type: message.readUInt16BE(at),
    end: at + 4,
  };
}

/** An answer with authority to the question of `query`; cut to the question when longer than `limit`. */
export function writeReply(
  query: Buffer,
  question: Question,
  reply: { code: number; answers: readonly Answer[]; authority?: readonly Answer[] },
  limit: number,
): Buffer {
  const { answers, authority = [] } = reply;
  const records = [...answers, ...authority].map(writeRecord);
  const size = question.end + records.reduce((sum, { length }) => sum + length, 0);
  const isCut = size > limit;
  const header = Buffer.alloc(headerSize);
  header.writeUInt16BE(question.id, 0);
  const flags = 0x8400 | (isCut ? 0x0200 : 0) | (question.recursionDesired ? 0x0100 : 0) | 0x0080;
  header.writeUInt16BE(flags | reply.code, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(isCut ? 0 : answers.length, 6);
  header.writeUInt16BE(isCut ? 0 : authority.length, 8);
  const body = query.subarray(headerSize, question.end);
  return Buffer.concat([header, body, ...(isCut ? [] : records)]);
}

function writeRecord({ name, type, ttl, data }: Answer): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(internet, 2);
  fixed.writeUInt32BE(ttl, 4);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([writeName(name), fixed, data]);
}

export function writeName(name: string): Buffer {
  const labels = name === "" ? [] : name.split(".");
  const parts = labels.map((label) => {
    const bytes = Buffer.from(label, "latin1").subarray(0, 63);
    return Buffer.concat([Buffer.of(bytes.length), bytes]);
  });
  return Buffer.concat([...parts, Buffer.of(0)]);
}

export function addressData(address: string): Buffer {
  return Buffer.from(address.split(".").map(Number));
}

export function serviceData(port: number, target: string): Buffer {
  const fixed = Buffer.alloc(6);
  // Priority, weight, port (RFC 2782).
  fixed.writeUInt16BE(0, 0);
  fixed.writeUInt16BE(100, 2);
  fixed.writeUInt16BE(port, 4);
  return Buffer.concat([fixed, writeName(target)]);
}
