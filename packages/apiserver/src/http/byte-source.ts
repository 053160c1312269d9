/** A body of which its reader takes as much as it can pass on, so that what waits stays where it is shared. */
export interface ByteSource {
  /**
   * The next bytes, at most `limit` (at least 1): undefined when there are none now, null after the last. They are not to be
   * changed; what was taken is passed on when the next is taken.
   */
  take(limit: number): Uint8Array | undefined | null;
  /** Once, before the first `take`. */
  attach(reader: ByteReader): void;
  /** The reader takes nothing more. */
  cancel(): void;
}

/** What a source lets its reader know. */
export interface ByteReader {
  /** There may be something to take, after `take` gave nothing. */
  ready(): void;
  /** The body ends in the middle: the connection goes, too. */
  cut(): void;
}

/** The same bytes for callers in this process. */
export function webStreamOf(source: ByteSource): ReadableStream<Uint8Array> {
  const limit = 1024 * 1024;
  let ready = () => {};
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        source.attach({
          ready: () => ready(),
          cut: () => controller.error(new Error("the stream was cut off: its reader is too slow")),
        });
      },
      async pull(controller) {
        for (;;) {
          const bytes = source.take(limit);
          if (bytes === null) return controller.close();
          if (bytes) return controller.enqueue(bytes);
          await new Promise<void>((resolve) => (ready = resolve));
        }
      },
      cancel: () => source.cancel(),
    },
    { highWaterMark: 0 },
  );
}
