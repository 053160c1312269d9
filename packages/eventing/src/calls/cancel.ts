import { type Clock } from "@spry/kube";
import { type Queue, RecordChangedError } from "@spry/queue";
import { type Call, callBounds, callBucket, hasEnded } from "./call.ts";

/** A call changes its state a few times; more changes than this are not its own. */
const maxAttempts = 20;

/**
 * Whether there was anything to cancel. Of a call's end and its cancellation, the first one counts. A request that is under
 * way in another process is not cut short: its response is ignored.
 */
export async function cancelCall(
  queue: Queue,
  clock: Clock,
  { namespace, id }: { namespace: string; id: string },
): Promise<boolean> {
  const bucket = callBucket(namespace);
  for (let attempt = 1; ; attempt++) {
    const kept = await queue.get(bucket, id);
    const call = kept === undefined ? undefined : (JSON.parse(kept) as Call);
    if (!call || hasEnded(call)) return false;
    const now = clock.now();
    const ended: Call = { ...call, state: "cancelled", endedAt: new Date(now).toISOString() };
    const expiresAt = now + callBounds.defaultRetentionSeconds * 1_000;
    const value = JSON.stringify(ended);
    try {
      await queue.put({ bucket, key: id, value, expiresAt, replaces: kept });
      return true;
    } catch (error) {
      if (!(error instanceof RecordChangedError) || attempt === maxAttempts) throw error;
    }
  }
}
