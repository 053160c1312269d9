/**
 * Work on large objects takes turns: one step of one request at a time, and after each the requests of others come in. Nothing here
 * is for small objects, whose steps are shorter than the change of turns.
 */

/** Characters of JSON from which on an object is large. */
const largeLength = 64 * 1024;
/** The pause after a step is as long as the step was, but not longer than several rounds of the event loop, in milliseconds. */
const longestPauseMs = 10;

const waiting: (() => void)[] = [];
let isTaken = false;

function next(): void {
  const start = waiting.shift();
  if (!start) {
    isTaken = false;
    return;
  }
  const begin = performance.now();
  start();
  // The step begins when this returns; its end is followed by input, and only then by the timer.
  setImmediate(() => setTimeout(next, Math.min(performance.now() - begin, longestPauseMs)));
}

/** Resolves when it is the caller's turn: what follows until the next await of anything is its step. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (isTaken) return;
    isTaken = true;
    setImmediate(next);
  });
}

export function isLarge(json: { length: number }): boolean {
  return json.length >= largeLength;
}

/** What is done step by step: at once, or each step in a turn of its own. */
export async function inTurns<T>(steps: Generator<void, T>, takesTurns: boolean): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    if (takesTurns) await turn();
  }
}

/** The same without a stop. */
export function atOnce<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
