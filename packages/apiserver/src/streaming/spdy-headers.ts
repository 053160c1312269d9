import { constants, createDeflate, createInflate, type Deflate, type Inflate } from "node:zlib";
import { headerDictionary } from "./spdy-dictionary.ts";

const maxBlockBytes = 64 * 1024;
const maxHeaders = 100;

/** Reads and writes header blocks. Each direction of a connection is one compressed stream. */
export class SpdyHeaders {
  readonly #inflate: Inflate = createInflate({ dictionary: headerDictionary });
  readonly #deflate: Deflate = createDeflate({ dictionary: headerDictionary });

  /** Names in lower case, as the protocol has them. Blocks must be given in the order they came in. */
  async decode(block: Buffer): Promise<Map<string, string>> {
    const output = collect(this.#inflate);
    await new Promise<void>((resolve, reject) => {
      this.#inflate.once("error", reject);
      output.tooLong = () => reject(new Error("SPDY header block is too long"));
      this.#inflate.write(block, () => {
        this.#inflate.off("error", reject);
        resolve();
      });
    });
    return parsed(output.end());
  }

  /** Blocks must be sent in the order of these calls; one at a time. */
  async encode(headers: ReadonlyMap<string, string>): Promise<Buffer> {
    const output = collect(this.#deflate);
    const parts = [uint32(headers.size)];
    for (const text of [...headers].flat()) {
      const bytes = Buffer.from(text, "latin1");
      parts.push(uint32(bytes.length), bytes);
    }
    this.#deflate.write(Buffer.concat(parts));
    await new Promise<void>((resolve) => {
      this.#deflate.flush(constants.Z_SYNC_FLUSH, resolve);
    });
    return output.end();
  }

  close(): void {
    this.#inflate.on("error", () => {}).destroy();
    this.#deflate.on("error", () => {}).destroy();
  }
}

function collect(stream: Inflate | Deflate) {
  const chunks: Buffer[] = [];
  let size = 0;
  const collector = {
    tooLong: () => {},
    end() {
      stream.off("data", take);
      return Buffer.concat(chunks);
    },
  };
  const take = (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxBlockBytes) {
      stream.destroy();
      collector.tooLong();
    } else chunks.push(chunk);
  };
  stream.on("data", take);
  return collector;
}

function parsed(block: Buffer): Map<string, string> {
  let at = 0;
  const next = (): number => {
    if (at + 4 > block.length) throw new Error("SPDY header block is cut off");
    return block.readUInt32BE((at += 4) - 4);
  };
  const text = (): string => {
    const length = next();
    if (at + length > block.length) throw new Error("SPDY header block is cut off");
    return block.toString("latin1", at, (at += length));
  };
  const count = next();
  if (count > maxHeaders) throw new Error("SPDY header block has too many headers");
  const headers = new Map<string, string>();
  for (let index = 0; index < count; index++) headers.set(text().toLowerCase(), text());
  return headers;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
