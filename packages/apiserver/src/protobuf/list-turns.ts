/** What is done between two pauses, in milliseconds; the pause is as long as the work was. */
const sliceMs = 5;

const waiting: (() => void)[] = [];
let isTaken = false;
let until = 0;

function next(): void {
  const start = waiting.shift();
  if (!start) {
    isTaken = false;
    return;
  }
  const begin = performance.now();
  until = begin + sliceMs;
  start();
  // The slice begins when this returns.
  setImmediate(() => setTimeout(next, Math.min(performance.now() - begin, 10 * sliceMs)));
}

/**
 * For long work of many requests: one of them at a time works until `isOver`, and together they have half of the processor.
 * Resolves when it is the caller's turn; what follows until the next await is its slice.
 */
export function listTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (isTaken) return;
    isTaken = true;
    setImmediate(next);
  });
}

/** Whether the caller's slice is over. */
export function isOver(): boolean {
  return performance.now() >= until;
}
