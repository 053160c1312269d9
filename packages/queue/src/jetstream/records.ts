import { recordChanged } from "../errors.ts";
import { type RecordWrite, type StoredRecord } from "../queue.ts";
import { type Link } from "./publishing.ts";

interface Kept {
  value: string;
  expiresAt?: number;
}

/** Small texts: the last message of a subject each. They are read from the stream's leader, so that what was written is seen. */
export class Records {
  readonly #link: Link;

  constructor(link: Link) {
    this.#link = link;
  }

  async get(bucket: string, key: string): Promise<string | undefined> {
    return (await this.#kept(this.#link.names.record(bucket, key)))?.value;
  }

  /**
   * The position of the value that a write replaces: the server takes the write only while it is the last one.
   * @throws RecordChangedError when it has another value by now
   */
  async replacedBy({ bucket, key, value, replaces }: RecordWrite): Promise<number> {
    const kept = await this.#kept(this.#link.names.record(bucket, key));
    // The new one: an earlier attempt has been written, whose answer was lost.
    if (kept && (kept.value === replaces || kept.value === value)) return kept.seq;
    throw recordChanged(`${bucket}/${key}`);
  }

  async #kept(subject: string): Promise<(Kept & { seq: number }) | undefined> {
    const { manager, names } = this.#link;
    const found = await manager.streams.getMessage(names.stream, { last_by_subj: subject });
    const kept = found ? (JSON.parse(found.string()) as Kept) : undefined;
    if (!found || !kept || (kept.expiresAt ?? Infinity) <= Date.now()) return undefined;
    return { ...kept, seq: found.seq };
  }

  async remove(bucket: string, key: string): Promise<void> {
    const { manager, names } = this.#link;
    await manager.streams.purge(names.stream, { filter: names.record(bucket, key) });
  }

  /** Of a bucket. */
  async removeAll(bucket: string): Promise<void> {
    const { manager, names } = this.#link;
    await manager.streams.purge(names.stream, { filter: names.records(bucket) });
  }

  /** Takes the names of all keys of the bucket each time. */
  async list(
    bucket: string,
    { after = "", limit }: { after?: string; limit: number },
    maxBytes: number,
  ): Promise<StoredRecord[]> {
    const { manager, names } = this.#link;
    const info = await manager.streams.info(names.stream, {
      subjects_filter: names.records(bucket),
    });
    const subjects = Object.keys(info.state.subjects ?? {}).sort();
    const records: StoredRecord[] = [];
    let bytes = 0;
    for (const subject of subjects) {
      const key = names.keyOf(subject);
      if (Buffer.compare(Buffer.from(key), Buffer.from(after)) <= 0) continue;
      if (records.length >= limit || bytes >= maxBytes) break;
      const kept = await this.#kept(subject);
      if (!kept) continue;
      const { value, expiresAt } = kept;
      records.push({ bucket, key, value, ...(expiresAt === undefined ? {} : { expiresAt }) });
      bytes += value.length;
    }
    return records;
  }
}
