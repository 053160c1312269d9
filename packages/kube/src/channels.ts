/**
 * Several streams in one: how the API server and a node's agent speak while a command runs in a
 * container. A frame is a channel (1 byte), a length (4 bytes, big endian) and so many bytes.
 *
 * Numbers and meaning are those of `v5.channel.k8s.io`, where the same bytes travel as WebSocket
 * messages without a length.
 */
export const channels = {
  stdin: 0,
  stdout: 1,
  stderr: 2,
  /** Once, at the end: a `Status` as JSON that says how it went. */
  error: 3,
  /** `{"Width": columns, "Height": rows}`. */
  resize: 4,
  /** One byte: the channel on which nothing more will come. */
  close: 255,
} as const;

export interface ChannelFrame {
  channel: number;
  data: Buffer;
}

const headerLength = 5;
/** Longer than any client's buffer; a frame is held in memory as a whole. */
export const maxFrameBytes = 16 * 1024 * 1024;

export function encodeFrame(channel: number, data: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(headerLength + data.length);
  frame.writeUInt8(channel, 0);
  frame.writeUInt32BE(data.length, 1);
  frame.set(data, headerLength);
  return frame;
}

/** Reads frames until the stream ends. Throws for one that is too long or cut off. */
export async function* readFrames(stream: AsyncIterable<Uint8Array>): AsyncGenerator<ChannelFrame> {
  let pending: Buffer = Buffer.alloc(0);
  for await (const chunk of stream) {
    pending = pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([pending, chunk]);
    while (pending.length >= headerLength) {
      const length = pending.readUInt32BE(1);
      if (length > maxFrameBytes) throw new Error(`frame of ${length} bytes is too long`);
      const end = headerLength + length;
      if (pending.length < end) break;
      yield { channel: pending.readUInt8(0), data: pending.subarray(headerLength, end) };
      pending = pending.subarray(end);
    }
  }
  if (pending.length > 0) throw new Error("stream ended within a frame");
}
