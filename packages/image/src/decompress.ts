import { Readable } from "node:stream";
import { createGunzip, createZstdDecompress, gunzipSync } from "node:zlib";

/** Up to this size a layer is decompressed in one call: no stream to set up. */
const oneCallLimit = 256 * 1024;
const oneCallOutputLimit = 16 * 1024 * 1024;
/** A few dozen small files: the event loop gets its turn often enough. */
const chunkSize = 64 * 1024;

/** gzip, zstd or plain, known by the first bytes: media types of layers are often wrong. */
export async function* decompress(
  source: AsyncIterable<Uint8Array>,
  limit: number,
): AsyncGenerator<Uint8Array> {
  const chunks = source[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  let size = 0;
  let done = false;
  while (size < oneCallLimit && !done) {
    const next = await chunks.next();
    done = next.done ?? false;
    if (next.done) break;
    first.push(next.value);
    size += next.value.length;
  }
  const head = Buffer.concat(first);
  const compression = compressionOf(head);
  if (compression === "gzip" && done) {
    const whole = gunzipAtOnce(head, Math.min(limit, oneCallOutputLimit));
    if (whole) return yield whole;
  }
  const all = joined(head, chunks, done);
  if (compression === "none") return yield* all;
  const decompressor =
    compression === "gzip" ? createGunzip({ chunkSize }) : createZstdDecompress({ chunkSize });
  const readable = Readable.from(all, { objectMode: false });
  // `pipe` does not pass errors on, and a broken download must not look like an end.
  readable.once("error", (error) => decompressor.destroy(error));
  try {
    yield* readable.pipe(decompressor) as AsyncIterable<Uint8Array>;
  } finally {
    readable.destroy();
  }
}

/** Undefined when the output is too large to be held at once. */
function gunzipAtOnce(bytes: Buffer, maxOutputLength: number): Buffer | undefined {
  try {
    return gunzipSync(bytes, { maxOutputLength });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") return undefined;
    throw error;
  }
}

function compressionOf(head: Buffer): "gzip" | "zstd" | "none" {
  if (head[0] === 0x1f && head[1] === 0x8b) return "gzip";
  return head.length >= 4 && head.readUInt32LE(0) === 0xfd2fb528 ? "zstd" : "none";
}

async function* joined(
  head: Buffer,
  rest: AsyncIterator<Uint8Array>,
  done: boolean,
): AsyncGenerator<Uint8Array> {
  yield head;
  if (done) return;
  for (;;) {
    const next = await rest.next();
    if (next.done) return;
    yield next.value;
  }
}
