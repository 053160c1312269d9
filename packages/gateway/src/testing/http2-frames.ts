/** HTTP/2 by hand (RFC 9113), for what no client library sends. */
import { type TLSSocket } from "node:tls";

export const frameType = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  continuation: 9,
};
export const endStream = 0x1;
export const endHeaders = 0x4;
export const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

export function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Headers as literals without indexing (RFC 7541, section 6.2.2). */
export function headerBlock(headers: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(
    headers.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]),
  );
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  const length: number[] = [];
  if (bytes.length < 127) length.push(bytes.length);
  else {
    length.push(127);
    let rest = bytes.length - 127;
    for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) | 128);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}

export const requestTo = (authority: string, path = "/", method = "GET") =>
  [
    [":method", method],
    [":scheme", "https"],
    [":authority", authority],
    [":path", path],
  ] as const;

export const empty = Buffer.alloc(0);
/** The client's side of the beginning of a connection. */
export const opening = Buffer.concat([
  Buffer.from(preface),
  frame(frameType.settings, 0, 0, empty),
]);

/** Frames as they come, as `type stream code`, until one is the `last`, or the connection has ended. */
export async function framesUntil(socket: TLSSocket, last?: RegExp): Promise<string[]> {
  const chunks: Buffer[] = [];
  await new Promise<void>((resolve) => {
    socket.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      if (last && framesIn(Buffer.concat(chunks)).some((each) => last.test(each))) socket.destroy();
    });
    socket.on("error", () => {});
    socket.once("close", () => resolve());
    socket.once("end", () => socket.destroy());
  });
  return framesIn(Buffer.concat(chunks));
}

function framesIn(all: Buffer): string[] {
  const found: string[] = [];
  for (let at = 0; at + 9 <= all.length;) {
    const length = all.readUIntBE(at, 3);
    const type = all.readUInt8(at + 3);
    const name = Object.entries(frameType).find(([, value]) => value === type)?.[0] ?? `${type}`;
    const hasCode = type === frameType.goaway || type === frameType.reset;
    const codeAt = at + 9 + (type === frameType.goaway ? 4 : 0);
    const code = hasCode && codeAt + 4 <= all.length ? ` ${all.readUInt32BE(codeAt)}` : "";
    found.push(`${name} ${all.readUInt32BE(at + 5)}${code}`);
    at += 9 + length;
  }
  return found;
}
