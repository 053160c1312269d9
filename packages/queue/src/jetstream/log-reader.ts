import { type JetStreamManager, type StoredMsg } from "@nats-io/jetstream";

/** Messages of one request. */
const batch = 256;

/** Messages of a stream, from `seq` on, in one subject or several by a wildcard, until `limit` or so many bytes are reached. */
export async function readLog(
  manager: JetStreamManager,
  stream: string,
  {
    seq,
    subject,
    limit,
    maxBytes,
  }: { seq: number; subject: string; limit: number; maxBytes: number },
): Promise<StoredMsg[]> {
  const found: StoredMsg[] = [];
  let bytes = 0;
  let next = seq;
  while (found.length < limit && bytes < maxBytes) {
    const wanted = Math.min(limit - found.length, batch);
    let got = 0;
    try {
      const page = await manager.direct.getBatch(stream, {
        seq: next,
        batch: wanted,
        next_by_subj: subject,
        max_bytes: maxBytes,
      });
      for await (const message of page) {
        got++;
        next = message.seq + 1;
        if (found.length >= limit || bytes >= maxBytes) continue;
        found.push(message);
        bytes += message.data.length;
      }
    } catch (error) {
      // There are no more.
      if ((error as { code?: unknown }).code !== 404) throw error;
    }
    if (got === 0 || (got < wanted && bytes < maxBytes / 2)) break;
  }
  return found;
}
