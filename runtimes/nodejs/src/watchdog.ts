import { Worker } from "node:worker_threads";

interface Watch {
  /** The main thread counts up the first number while its event loop turns. */
  beats: SharedArrayBuffer;
  intervalMs: number;
  limitMs: number;
}

/**
 * Ends the process when its event loop has stood still for so long: a handler that never returns
 * would leave everybody waiting, and only a new process helps. Says first where it hangs. The
 * watching thread sleeps; it shares nothing with the Function but a counter.
 */
export function watchEventLoop(limitMs: number): void {
  const intervalMs = Math.min(limitMs / 8, 5000);
  const beats = new SharedArrayBuffer(8);
  const counter = new Int32Array(beats);
  setInterval(() => Atomics.add(counter, 0, 1), intervalMs).unref();
  const worker = new Worker(`(${watch.toString()})()`, {
    eval: true,
    workerData: { beats, intervalMs, limitMs } satisfies Watch,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 },
  });
  // Without it the Function is served all the same.
  worker.on("error", () => {});
  worker.unref();
}

/** Runs in the thread, from its text: it can use nothing of this file. */
function watch(): void {
  const { workerData } = process.getBuiltinModule("node:worker_threads");
  const { beats, intervalMs, limitMs } = workerData as Watch;
  const counter = new Int32Array(beats);
  let last = -1;
  let missed = 0;
  // Its own turns are counted, not the time: that also passes while the machine sleeps.
  while (missed * intervalMs < limitMs) {
    Atomics.wait(counter, 1, 0, intervalMs);
    const now = Atomics.load(counter, 0);
    missed = now === last ? missed + 1 : 0;
    last = now;
  }
  const { writeSync } = process.getBuiltinModule("node:fs");
  writeSync(2, `the handler blocks the event loop since ${Math.round(limitMs / 1000)} s\n`);
  // For a loop in native code, which cannot be interrupted to say where it is.
  setTimeout(() => process.kill(process.pid, "SIGKILL"), 2000);
  const session = new (process.getBuiltinModule("node:inspector").Session)();
  session.connectToMainThread();
  const urls = new Map<string, string>();
  session.on("Debugger.scriptParsed", ({ params }) => urls.set(params.scriptId, params.url));
  session.on("Debugger.paused", ({ params }) => {
    for (const { functionName, location } of params.callFrames.slice(0, 50)) {
      const place = `${urls.get(location.scriptId) ?? ""}:${location.lineNumber + 1}:${(location.columnNumber ?? 0) + 1}`;
      writeSync(2, `    at ${functionName || "<anonymous>"} (${place})\n`);
    }
    // As process 1 of a container nothing but its own exit ends it.
    session.post("Runtime.evaluate", { expression: "globalThis.process.reallyExit(1)" });
  });
  session.post("Debugger.enable");
  session.post("Debugger.pause");
}
