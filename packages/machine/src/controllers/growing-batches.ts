/**
 * Attempts in batches of 1, 2, 4, …, each at once, and ends after the batch in which one fails: what a quota refuses is
 * asked for once, not as often as there are Pods to make (`pkg/controller/controller_utils.go: slowStartBatch`).
 */
export async function inGrowingBatches<T>(
  items: readonly T[],
  attempt: (item: T) => Promise<void>,
): Promise<{ done: number; failure?: Error }> {
  let done = 0;
  for (let size = 1; done < items.length; size *= 2) {
    const results = await Promise.allSettled(items.slice(done, done + size).map(attempt));
    const failed = results.find((result) => result.status === "rejected");
    if (failed) {
      const succeeded = results.filter(({ status }) => status === "fulfilled").length;
      return { done: done + succeeded, failure: failed.reason as Error };
    }
    done += results.length;
  }
  return { done };
}
