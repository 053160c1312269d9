import { logLine } from "./log.ts";

/** How long code may load without a word. */
const silentMs = 1000;

/** In place of what was waited for: it can never come. */
export const nothingLeft = Symbol("nothing is left that it could wait for");

/**
 * Waits for a part of the load for as long as the process has anything to wait for; a Function may take as long as it needs. After a
 * second the log has `sentence`.
 */
export function loaded<T>(part: Promise<T>, sentence: string): Promise<T | typeof nothingLeft> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => logLine(sentence), silentMs).unref();
    const stop = () => {
      clearTimeout(timer);
      process.off("beforeExit", end);
    };
    const end = () => {
      stop();
      resolve(nothingLeft);
    };
    process.on("beforeExit", end);
    part.finally(stop).then(resolve, reject);
  });
}
