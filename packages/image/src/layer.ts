import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { stat } from "node:fs/promises";
import { type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { type Body } from "./client/http.ts";
import { type Digest, digestFrom, digestOf } from "./digest.ts";
import { type Descriptor, mediaTypes } from "./manifest.ts";
import { type LayerFile, sortLayerFiles, tarHeader, tarPadding, tarTrailer } from "./tar-writer.ts";

export { type LayerFile };

/** A layer that is ready to be sent. */
export interface Layer {
  descriptor: Descriptor;
  /** Digest of the tar without compression: the layer's name in an image configuration. */
  diffId: Digest;
  /** Absent for a layer that is known to be in a registry already. */
  body?: Body;
}

/** Fastest level: a third of the time of zlib's default, for a tenth more bytes. */
const gzipLevel = 1;
const chunkSize = 256 * 1024;

/** Node.js has it from 22.15 on; an older interpreter may run the builder, too. */
const zstd: typeof zlib.createZstdCompress | undefined = zlib.createZstdCompress;

/** Up to this size a tar is compressed in one piece, while its digest is made: stream and file take as long again. */
const onePieceBytes = 16 * 1024 * 1024;

/**
 * A layer with these files and nothing of where or when it was made: sorted, owner 0, time 0, modes
 * 0644 or 0755. Compressed with gzip, in memory; where `scratchFile` is given, for there may be much, with zstd, which
 * takes a twentieth of gzip's time and fewer bytes (image-spec 1.1, media types; containerd 1.5 and Docker 23 read it).
 */
export async function createLayer(
  files: readonly LayerFile[],
  options: { scratchFile?: string } = {},
): Promise<Layer> {
  const tar = tarOf(sortLayerFiles(files));
  const { scratchFile } = options;
  if (scratchFile === undefined) return gzipped((await take(tar, Infinity)).bytes);
  const start = await take(tar, onePieceBytes);
  if (start.isWhole) return compressed(start.bytes);
  const whole = async function* () {
    yield start.bytes;
    yield* tar;
  };
  return writeLayer(whole(), scratchFile);
}

/** As much of a tar as there is, or a little more than `maxBytes` of it. */
async function take(
  tar: AsyncIterator<Uint8Array>,
  maxBytes: number,
): Promise<{ bytes: Buffer; isWhole: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  while (size <= maxBytes) {
    const next = await tar.next();
    if (next.done) return { bytes: Buffer.concat(chunks), isWhole: true };
    chunks.push(next.value);
    size += next.value.length;
    // Of many files: others have something to do meanwhile.
    if (size < maxBytes) await turn();
  }
  return { bytes: Buffer.concat(chunks), isWhole: false };
}

function gzipped(tar: Buffer): Layer {
  const bytes = withoutSystem(zlib.gzipSync(tar, { level: gzipLevel }));
  return layerOf(mediaTypes.layerGzip, bytes, digestOf(tar));
}

async function compressed(tar: Buffer): Promise<Layer> {
  if (!zstd) return gzipped(tar);
  const bytes = promisify(zlib.zstdCompress)(tar, { chunkSize: Math.max(chunkSize, tar.length) });
  const diffId = digestOf(tar);
  return layerOf(mediaTypes.layerZstd, await bytes, diffId);
}

function layerOf(mediaType: string, bytes: Uint8Array, diffId: Digest): Layer {
  const descriptor = { mediaType, digest: digestOf(bytes), size: bytes.length };
  return { descriptor, diffId, body: { size: bytes.length, open: () => bytes } };
}

async function writeLayer(tar: AsyncIterable<Uint8Array>, file: string): Promise<Layer> {
  const tarHash = createHash("sha256");
  const hash = createHash("sha256");
  const compressor = zstd ? zstd({ chunkSize }) : zlib.createGzip({ level: gzipLevel, chunkSize });
  let first = true;
  const feed = async () => {
    for await (const chunk of tar) {
      tarHash.update(chunk);
      await written(compressor, chunk);
    }
    compressor.end();
  };
  await Promise.all([
    feed().catch((error: unknown) => {
      compressor.destroy(error as Error);
      throw error;
    }),
    pipeline(
      compressor,
      async function* (compressed: AsyncIterable<Buffer>) {
        for await (const chunk of compressed) {
          if (!zstd && first && chunk.length >= 10) withoutSystem(chunk);
          first = false;
          hash.update(chunk);
          yield chunk;
        }
      },
      createWriteStream(file),
    ),
  ]);
  const { size } = await stat(file);
  const body = { size, open: () => createReadStream(file, { highWaterMark: chunkSize }) };
  const mediaType = zstd ? mediaTypes.layerZstd : mediaTypes.layerGzip;
  return {
    descriptor: { mediaType, digest: digestFrom(hash), size },
    diffId: digestFrom(tarHash),
    body,
  };
}

/**
 * Waits until a chunk is compressed. Were the end announced while the last chunk waits, Node.js would end zstd's frame
 * with that chunk and then once more, which adds an empty frame: the bytes would be a matter of time.
 */
function written(compressor: Writable, chunk: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    compressor.write(chunk, (error) => (error ? reject(error) : resolve()));
  });
}

/** Headers, contents and padding, gathered so that thousands of small files are not thousands of chunks. */
async function* tarOf(files: readonly LayerFile[]): AsyncGenerator<Uint8Array> {
  let gathered: Uint8Array[] = [];
  let size = 0;
  for (const entry of files) {
    const { header, content } = tarHeader(entry);
    gathered.push(header);
    size += header.length;
    if (content.size > 4 * 1024 * 1024 && content.file !== undefined) {
      yield Buffer.concat(gathered);
      gathered = [];
      size = 0;
      yield* wholeFile(content.file, content.size);
    } else if (content.size > 0) {
      gathered.push(content.read());
      size += content.size;
    }
    gathered.push(tarPadding(content.size));
    if (size < 256 * 1024) continue;
    yield Buffer.concat(gathered);
    gathered = [];
    size = 0;
  }
  gathered.push(tarTrailer);
  yield Buffer.concat(gathered);
}

/** A large file's bytes: as many as its header says, or an error. */
async function* wholeFile(file: string, size: number): AsyncGenerator<Uint8Array> {
  let read = 0;
  for await (const chunk of createReadStream(file, { end: size - 1 }) as AsyncIterable<Buffer>) {
    read += chunk.length;
    yield chunk;
  }
  if (read !== size) throw new Error(`reading ${file}: it changed meanwhile`);
}

/** zlib writes the operating system into byte 9 of gzip's header; 255 means unknown (RFC 1952). */
function withoutSystem<T extends Uint8Array>(gzip: T): T {
  gzip[9] = 255;
  return gzip;
}
