import { gunzipSync, zstdDecompressSync } from "node:zlib";

/** What is in a blob of a registry, whichever way it is compressed; other bytes as they are. */
export function decompressed(bytes: Buffer): Buffer {
  if (bytes.length >= 4 && bytes.readUInt32LE(0) === 0xfd2fb528) return zstdDecompressSync(bytes);
  return bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes;
}
