/** The longest line taken from a stream: above the largest object an API server stores (etcd: 1.5 MiB). */
const maxLineLength = 16 * 1024 * 1024;

/** Splits a byte stream at newlines; empty lines are passed over. */
export async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pending = "";
  for await (const chunk of stream) {
    pending += decoder.decode(chunk, { stream: true });
    let start = 0;
    for (let end; (end = pending.indexOf("\n", start)) >= 0; start = end + 1) {
      if (end > start) yield pending.slice(start, end);
    }
    pending = pending.slice(start);
    if (pending.length > maxLineLength) throw new Error("line of a watch stream is too long");
  }
  if (pending) yield pending;
}
