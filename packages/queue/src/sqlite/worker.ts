/** Program of a thread: the database, so that no sync of the disk holds up anything else. */
import { parentPort, workerData } from "node:worker_threads";
import { type Clock } from "@spry/kube";
import { type QueueLimits } from "../queue.ts";
import { Engine } from "./engine.ts";
import { type Reply, type Request } from "./protocol.ts";

const port = parentPort;
if (!port) throw new Error("this program runs as a thread");
/** As `systemClock` of `@spry/kube`, whose other parts would only cost memory here. */
const clock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, Math.min(ms, 0x7fff_ffff));
    timer.unref();
    return () => clearTimeout(timer);
  },
};
const { file, limits } = workerData as { file: string; limits: QueueLimits };
try {
  const engine = new Engine(file, limits, clock, (replies: Reply[]) => port.postMessage(replies));
  port.on("message", (requests: Request[]) => engine.receive(requests));
  port.postMessage([{ id: 0, value: "open" }]);
} catch (error) {
  port.postMessage([
    { id: 0, error: error instanceof Error ? error.message : String(error), kind: "unavailable" },
  ]);
}
