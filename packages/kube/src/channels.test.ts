import { expect, test } from "vitest";
import { encodeFrame, maxFrameBytes, readFrames } from "./channels.ts";

async function framesOf(chunks: Uint8Array[]) {
  async function* stream() {
    yield* chunks;
  }
  const frames: [number, string][] = [];
  for await (const { channel, data } of readFrames(stream())) frames.push([channel, String(data)]);
  return frames;
}

const bytes = Buffer.concat([
  encodeFrame(1, Buffer.from("hello")),
  encodeFrame(255, Buffer.alloc(0)),
  encodeFrame(2, Buffer.from("there")),
]);

test.each([1, 2, 5, 7, 1000])(
  "frames are the same whatever chunks they come in: %d",
  async (size) => {
    const chunks: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
    expect(await framesOf(chunks)).toEqual([
      [1, "hello"],
      [255, ""],
      [2, "there"],
    ]);
  },
);

test("a frame that is cut off is an error", async () => {
  await expect(framesOf([bytes.subarray(0, -1)])).rejects.toThrow("ended within a frame");
});

test("a frame that would fill the memory is an error at its first bytes", async () => {
  const header = Buffer.alloc(5);
  header.writeUInt32BE(maxFrameBytes + 1, 1);
  await expect(framesOf([header])).rejects.toThrow("too long");
});
