import { readFileSync, statSync } from "node:fs";

const headerSize = 32;
const frameHeaderSize = 24;
/** The log is checkpointed about every thousand pages; a log that is far longer was not written by this program. */
const maxSize = 512 * 1024 * 1024;

/**
 * Says what is wrong with a write-ahead log of SQLite, `undefined` if nothing is.
 *
 * SQLite replays a log up to its first bad frame and forgets the rest without a word. That is right for
 * the end of the log, a transaction that a crash cut short. But each transaction here is synced before the next
 * begins: a bad frame with a whole transaction *and more* behind it is no crash, and what SQLite would forget
 * had been acknowledged. A bad frame in the last transaction cannot be told from a crash.
 *
 * Format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log (section 4).
 */
export function damageOfLog(file: string): string | undefined {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= headerSize + frameHeaderSize) return undefined;
  if (size > maxSize) return `its log ${file} has ${size} bytes`;
  const log = readFileSync(file);
  const header = readHeader(log);
  const salts = header?.salts ?? log.readBigUInt64BE(headerSize + 8);
  const pageSize = header?.pageSize ?? 4096;
  const frames = framesOf(log, pageSize, salts);
  const bad = header ? firstBadFrame(log, frames, pageSize, header) : 0;
  if (bad === undefined) return undefined;
  const cut = frames.findIndex(({ commits, ours }, index) => index >= bad && ours && commits);
  const goesOn = cut >= 0 && frames.some(({ ours }, index) => index > cut && ours);
  return goesOn
    ? `its log ${file} has a bad frame (${bad + 1} of ${frames.length}) before later writes`
    : undefined;
}

interface Header {
  pageSize: number;
  /** Both salts as they stand in the file: each frame repeats them. */
  salts: bigint;
  littleEndian: boolean;
  sums: [number, number];
}

interface Frame {
  offset: number;
  /** Of this generation of the log; older frames stay behind the end until they are overwritten. */
  ours: boolean;
  /** The last frame of a transaction. */
  commits: boolean;
}

function readHeader(log: Buffer): Header | undefined {
  const magic = log.readUInt32BE(0);
  if (magic !== 0x377f0682 && magic !== 0x377f0683) return undefined;
  const littleEndian = magic === 0x377f0682;
  const sums = checksum(log, 0, 24, littleEndian, [0, 0]);
  if (sums[0] !== log.readUInt32BE(24) || sums[1] !== log.readUInt32BE(28)) return undefined;
  return { pageSize: log.readUInt32BE(8), salts: log.readBigUInt64BE(16), littleEndian, sums };
}

function framesOf(log: Buffer, pageSize: number, salts: bigint): Frame[] {
  const frames: Frame[] = [];
  const frameSize = frameHeaderSize + pageSize;
  for (let offset = headerSize; offset + frameSize <= log.length; offset += frameSize) {
    frames.push({
      offset,
      ours: log.readBigUInt64BE(offset + 8) === salts,
      commits: log.readUInt32BE(offset + 4) !== 0,
    });
  }
  return frames;
}

/** Each frame's checksum continues that of the frame before it. */
function firstBadFrame(
  log: Buffer,
  frames: readonly Frame[],
  pageSize: number,
  { littleEndian, sums: headerSums }: Header,
): number | undefined {
  let sums = headerSums;
  for (const [index, { offset, ours }] of frames.entries()) {
    sums = checksum(log, offset, 8, littleEndian, sums);
    sums = checksum(log, offset + frameHeaderSize, pageSize, littleEndian, sums);
    const isGood =
      ours &&
      sums[0] === log.readUInt32BE(offset + 16) &&
      sums[1] === log.readUInt32BE(offset + 20);
    if (!isGood) return index;
  }
  return undefined;
}

/** SQLite's own sum over pairs of 32-bit words (section 4.2 of the format). */
function checksum(
  log: Buffer,
  start: number,
  length: number,
  littleEndian: boolean,
  [first, second]: [number, number],
): [number, number] {
  let [a, b] = [first, second];
  for (let at = start; at < start + length; at += 8) {
    const x = littleEndian ? log.readUInt32LE(at) : log.readUInt32BE(at);
    const y = littleEndian ? log.readUInt32LE(at + 4) : log.readUInt32BE(at + 4);
    a = (a + x + b) >>> 0;
    b = (b + y + a) >>> 0;
  }
  return [a, b];
}
