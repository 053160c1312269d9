/** Program of a thread: asks an API server again and again, and reports how long the slowest answer took when it is told to stop. */
import { Agent, request } from "node:https";
import { setTimeout as pause } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";

const { port, ...credentials } = workerData as {
  port: number;
  ca: string;
  cert: string;
  key: string;
};
const agent = new Agent({ ...credentials, keepAlive: true });
const over = new AbortController();
parentPort?.once("message", () => over.abort());

function ask(): Promise<number> {
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path: "/api/v1/namespaces/default", agent };
    const outgoing = request(options, (response) => {
      response.resume().on("end", () => {
        if (response.statusCode === 200) resolve(performance.now() - start);
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
