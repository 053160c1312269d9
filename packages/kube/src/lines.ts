/** The longest line taken from a stream: above the largest object an API server stores (etcd: 1.5 MiB). */
const maxLineLength = 16 * 1024 * 1024;

/**
 * Splits a byte stream at newlines; empty lines are passed over. An aborted signal cancels the
 * stream and ends the lines, also when the source of the stream ignores the signal.
 */
export async function* readLines(
  stream: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<string> {
  const reader = stream.getReader();
  const cancel = () => void reader.cancel(signal?.reason).catch(() => {});
  if (signal?.aborted) cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  const decoder = new TextDecoder();
  let pending = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      pending += decoder.decode(value, { stream: true });
      let start = 0;
      for (let end; (end = pending.indexOf("\n", start)) >= 0; start = end + 1) {
        if (end > start) yield pending.slice(start, end);
      }
      pending = pending.slice(start);
      if (pending.length > maxLineLength) throw new Error("line of a watch stream is too long");
    }
    if (pending) yield pending;
  } finally {
    signal?.removeEventListener("abort", cancel);
    cancel();
  }
}
