/**
 * Events on one machine, the client in a process of its own: how many are accepted in a second, on disk; how long accepting takes at 1,000 in a
 * second; from a client's POST to the sink's handler; what a million waiting events and a thousand idle consumers cost.
 * Aims are those of an idle machine: on a busy one, only ratios within one run say anything.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, createServer, request as httpRequest } from "node:http";
import { type AddressInfo } from "node:net";
import { loadavg, tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { createPublisher, EventingMetrics } from "@spry/eventing";
import { silentLogger } from "@spry/kube";
import { openSqliteQueue, type Queue } from "@spry/queue";
import { jetstreamRatios } from "./events-jetstream.ts";
import { quantile } from "./figures.ts";

const subject = "event:sap.kyma.custom.shop.order.created.v1";
const waitingEvents = Number(process.env["BENCH_EVENTS"] ?? 1_000_000);
let nextId = 0;

export async function run(): Promise<void> {
  const directory = mkdtempSync(path.join(tmpdir(), "bench-events-"));
  console.log(`load ${loadavg()[0]?.toFixed(1)}`);
  const queue = await openSqliteQueue({ directory, limits: { maxBytes: 8 * 1024 ** 3 } });
  const server = createPublisher({
    queue: () => queue,
    metrics: new EventingMetrics(),
    log: silentLogger,
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    const before = await acceptRate(queue);
    line("accepted by the queue, 256 at a time", before, "/s", 5_000);
    line(
      "accepted by the publisher, 64 clients",
      await client<number>(port, "rate", 64, 5_000),
      "/s",
      5_000,
    );
    const paced = await client<number[]>(port, "paced", 1_000, 5);
    line("accepting at 1,000/s, median", quantile(paced, 0.5), "ms");
    line("accepting at 1,000/s, p99", -quantile(paced, 0.99), "ms", -5);
    line("publish to handler, median", -(await handlerLatency(queue, port)), "ms", -5);
    const memory = process.memoryUsage().rss;
    await fill(queue, waitingEvents);
    const grown = (process.memoryUsage().rss - memory) / 1024 ** 2;
    line(`memory of ${waitingEvents} waiting events`, -grown, "MiB", -100);
    const after = await acceptRate(queue);
    line("accepted with them waiting, of before", (after / before) * 100, "%", 80);
    await idle(queue);
    const ratios = await jetstreamRatios();
    if (ratios) {
      line("JetStream driver, publishing, of the bare client", ratios.publishing, "%", 70);
      line("JetStream driver, taking, of the bare client", ratios.taking, "%", 70);
    }
  } finally {
    server.closeAllConnections();
    server.close();
    await queue.close();
    rmSync(directory, { recursive: true });
  }
}

/** A negative value is one that should be small. */
function line(label: string, value: number, unit: string, aim?: number): void {
  const isMet = aim !== undefined && value >= aim;
  const sign = (aim ?? 0) < 0 ? "≤" : "≥";
  const verdict = aim === undefined ? "" : `   aim ${sign} ${Math.abs(aim)} ${isMet ? "✔" : "✘"}`;
  console.log(`${label.padEnd(46)} ${Math.abs(value).toFixed(1).padStart(10)} ${unit}${verdict}`);
}

const message = () => ({
  subject,
  key: `shop\n${nextId++}`,
  attributes: { specversion: "1.0", id: String(nextId), source: "shop", type: "order.created.v1" },
  body: Buffer.from(JSON.stringify({ order: nextId })),
});

async function acceptRate(queue: Queue, count = 20_000): Promise<number> {
  const begin = performance.now();
  let left = count;
  const producer = async () => {
    while (left-- > 0) await queue.append([message()]);
  };
  await Promise.all(Array.from({ length: 256 }, producer));
  return count / ((performance.now() - begin) / 1_000);
}

function publish(port: number, agent: Agent): Promise<void> {
  const id = String(nextId++);
  const body = `{"specversion":"1.0","id":"${id}","source":"shop","type":"order.created.v1","data":{}}`;
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/cloudevents+json" };
    const options = { port, host: "127.0.0.1", method: "POST", path: "/publish", agent, headers };
    const request = httpRequest(options, (response) => {
      response.resume();
      if (response.statusCode === 204) response.once("end", resolve);
      else reject(new Error(`HTTP ${response.statusCode}`));
    });
    request.once("error", reject);
    request.end(body);
  });
}

/** The client is a process of its own: what it takes of a core is not the publisher's. */
async function client<T>(port: number, ...args: (string | number)[]): Promise<T> {
  const program = path.join(import.meta.dirname, "events-client.ts");
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, [program, ...[port, ...args].map(String)]);
  return JSON.parse(stdout) as T;
}

/** The sink is a plain server of this process, called as the dispatcher calls it. */
async function handlerLatency(queue: Queue, port: number): Promise<number> {
  const consumer = await queue.consumer("bench", { subjects: [subject] });
  const agent = new Agent({ keepAlive: true });
  const sinkAgent = new Agent({ keepAlive: true });
  let handled = () => {};
  const sink = createServer((request, response) => {
    handled();
    request.resume().once("end", () => response.end());
  });
  await new Promise<void>((resolve) => sink.listen(0, "127.0.0.1", resolve));
  const target = (sink.address() as AddressInfo).port;
  const stop = new AbortController();
  const delivering = (async () => {
    while (!stop.signal.aborted) {
      for (const delivery of await consumer.next(10, stop.signal)) {
        const options = { port: target, host: "127.0.0.1", method: "POST", agent: sinkAgent };
        httpRequest(options, (response) => response.resume()).end(delivery.message.body);
        delivery.ack();
      }
    }
  })();
  const times: number[] = [];
  for (let n = 0; n < 300; n++) {
    const begin = performance.now();
    const arrived = new Promise<void>((resolve) => (handled = resolve));
    await publish(port, agent);
    await arrived;
    times.push(performance.now() - begin);
  }
  stop.abort();
  await delivering;
  await queue.removeConsumer("bench");
  for (const each of [agent, sinkAgent]) each.destroy();
  sink.closeAllConnections();
  sink.close();
  return quantile(times, 0.5);
}

async function fill(queue: Queue, count: number): Promise<void> {
  await queue.consumer("waiting", { subjects: [subject] });
  for (let left = count; left > 0; left -= 1_000)
    await queue.append(Array.from({ length: Math.min(left, 1_000) }, message));
}

/** A thousand consumers that wait for something that does not come. */
async function idle(queue: Queue): Promise<void> {
  const stop = new AbortController();
  const waiting: Promise<unknown>[] = [];
  for (let n = 0; n < 1_000; n++) {
    const consumer = await queue.consumer(`idle-${n}`, { subjects: [`event:idle-${n}`] });
    waiting.push(consumer.next(1, stop.signal));
  }
  await queue.head();
  const before = process.cpuUsage();
  const seconds = 5;
  await pause(seconds * 1_000);
  const { user, system } = process.cpuUsage(before);
  stop.abort();
  await Promise.all(waiting);
  line("1,000 idle consumers, of a core", -((user + system) / 1e6 / seconds) * 100, "%", -1);
}
