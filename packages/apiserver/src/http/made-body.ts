import { type ByteSource } from "./byte-source.ts";

/** A body that ends, and is made as its reader takes it. */
export class MadeBody {
  readonly source: ByteSource;
  /** In bytes, where it is known before. */
  readonly length: number | undefined;

  constructor(source: ByteSource, length?: number) {
    this.source = source;
    this.length = length;
  }
}
