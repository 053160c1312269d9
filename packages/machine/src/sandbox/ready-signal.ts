import { type Readable } from "node:stream";

/** Resolves when the program has written its word. */
export function readySignal(pipe: Readable): Promise<void> {
  return new Promise((resolve) => {
    let text = "";
    pipe.on("data", (chunk: Buffer) => {
      text = (text + chunk.toString("latin1")).slice(-64);
      if (text.includes("ready\n")) resolve();
    });
    pipe.on("error", () => {});
    // Otherwise the pipe alone would keep this program alive.
    (pipe as Readable & { unref?: () => void }).unref?.();
  });
}
