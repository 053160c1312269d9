import { sliceMs } from "./handshake-turns.ts";
import { OwnerQueue } from "./owner-queue.ts";

/** How many requests of a round begin at once, as it cannot be known yet how long each of them works. */
const mostAtOnce = 8;

const waiting = new OwnerQueue<() => void>();
let isScheduled = false;
let roundEnds = 0;
let begun = 0;

/**
 * Called before a request is answered: undefined if that may begin at once, otherwise a promise that resolves when it is the request's
 * turn. Requests of one round of the event loop begin at once while the round is short (`sliceMs`). The others wait, owners have their
 * turns one after the other, and between two slices of work the process looks at what else has arrived: a client that sends hundreds of
 * requests at once waits for itself, and others wait for a slice.
 */
export function requestTurn(owner: string): Promise<void> | undefined {
  if (!isScheduled) beginRound();
  if (waiting.isEmpty && begun < mostAtOnce && performance.now() < roundEnds) {
    begun++;
    return undefined;
  }
  return new Promise((resolve) => waiting.add(owner, resolve));
}

function beginRound(): void {
  isScheduled = true;
  begun = 0;
  roundEnds = performance.now() + sliceMs();
  setImmediate(() => {
    isScheduled = false;
    if (waiting.isEmpty) return;
    beginRound();
    next();
  });
}

function next(): void {
  const begin = waiting.next();
  if (!begin) return;
  begin();
  // A request works in microtasks; a tick that is added by one of them comes when all of them have run.
  queueMicrotask(() =>
    process.nextTick(() => {
      if (performance.now() < roundEnds) next();
    }),
  );
}
