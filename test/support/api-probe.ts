/**
 * Program of a thread: queries an API server until it is stopped, and then reports how long the slowest response took. The time
 * for which the two threads waited for a processor, while other programs had it, is not counted.
 */
import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { setTimeout as pause } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";

const { port, pid, ...credentials } = workerData as {
  port: number;
  pid: number;
  ca: string;
  cert: string;
  key: string;
};
const agent = new Agent({ ...credentials, keepAlive: true });
const over = new AbortController();
parentPort?.once("message", () => over.abort());

/** Milliseconds, without those in which the server's thread or this one was ready to run and had no processor. */
function ownTime(): number {
  return performance.now() - waited(`/proc/${pid}/task/${pid}`) - waited("/proc/thread-self");
}

/** Of a thread since its start, in milliseconds; 0 where the system does not say so. */
function waited(thread: string): number {
  try {
    return Number(readFileSync(`${thread}/schedstat`, "utf8").split(" ")[1]) / 1e6;
  } catch {
    return 0;
  }
}

function ask(): Promise<number> {
  const start = ownTime();
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path: "/api/v1/namespaces/default", agent };
    const outgoing = request(options, (response) => {
      response.resume().on("end", () => {
        if (response.statusCode === 200) resolve(ownTime() - start);
        else reject(new Error(`answered ${response.statusCode}`));
      });
    });
    outgoing.on("error", reject).end();
  });
}

let slowest = 0;
await ask();
while (!over.signal.aborted) {
  slowest = Math.max(slowest, await ask());
  await pause(20);
}
agent.destroy();
// oxlint-disable-next-line require-post-message-target-origin -- a thread, not a window
parentPort?.postMessage(slowest);
