/**
 * Half an hour of everything that a Function meets, good and bad, and whether its process grows:
 * `npm run bench -- soak --minutes 30`, with `--pause 20` milliseconds after each act where others use
 * the machine. What counts is the heap after a collection.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { pause } from "../test/support/platform.ts";
import { quantile } from "./figures.ts";
import { bundleRuntime, firstAnswer, layOut, startServer } from "./runtime-server.ts";
import { startCollector } from "./span-collector.ts";
import { WebSocket } from "ws";

const workers = 16;
const sampleMs = 5000;
/** Of the last third's median over the first third's. */
const allowedGrowth = 1.05;

const handler = `
const { setTimeout: sleep } = require("node:timers/promises");
const paths = {
  "/memory": () => { gc(); const { heapUsed, rss, external } = process.memoryUsage(); return { heapUsed, rss, external }; },
  "/throw": () => { throw new Error("thrown"); },
  "/reject": async () => { await null; throw "rejected"; },
  "/never": () => new Promise(() => {}),
  "/timer": () => { setTimeout(() => { throw new Error("in a timer"); }); return "ok"; },
  "/unhandled": () => { Promise.reject(new Error("nobody listens")); return "ok"; },
  "/stream": async function* () { for (let n = 0; n < 20; n++) { yield "x".repeat(1000); await sleep(1); } },
  "/response": () => new Response("text", { headers: { "x-a": "1" } }),
};
exports.main = (event, context) => {
  const { path } = event.extensions.request;
  return paths[path] ? paths[path](event, context) : { data: event.data ?? null, aborted: context.signal.aborted };
};
exports.websocket = (socket) => { socket.onmessage = ({ data }) => socket.send(data); };
`;

type Act = (port: number) => Promise<void>;

const agent = new Agent({ keepAlive: true });
const post = (type: string, body: string): Act => ask("/", { "content-type": type }, body);
const traced = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };
const event = { "ce-id": "1", "ce-type": "made", "ce-source": "/me", "ce-specversion": "1.0" };

const acts: Act[] = [
  ask("/"),
  ask("/response"),
  ask("/", traced),
  post("application/json", JSON.stringify({ a: "x".repeat(1000) })),
  post("application/json", "{"),
  post("application/octet-stream", "x".repeat(2 * 1024 * 1024)),
  post("application/x-www-form-urlencoded", "a[b]=1&c=2"),
  ask("/", { "content-type": "application/json", ...event }, "{}"),
  ask("/", { ...event, "ce-id": "" }, ""),
  ask("/throw"),
  ask("/reject"),
  ask("/timer"),
  ask("/unhandled"),
  ask("/stream"),
  ask("/never"),
  leave("/stream"),
  leave("/never"),
  raw("GET / HTTP/1.1\r\nbroken\r\n\r\n"),
  raw("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
  converse,
];

export async function run(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: {
      minutes: { type: "string", default: "30" },
      pause: { type: "string", default: "0" },
    },
  });
  const dir = mkdtempSync(path.join(tmpdir(), "spry-soak-"));
  const file = layOut(dir, bundleRuntime(), { "handler.js": handler });
  const collector = await startCollector();
  const env = { FUNC_TIMEOUT: "2", TRACE_COLLECTOR_ENDPOINT: collector.endpoint };
  const server = startServer(file, env, { flags: ["--expose-gc"] });
  try {
    await firstAnswer(server.port);
    await soak(server.port, Number(values.minutes) * 60_000, Number(values.pause));
  } finally {
    agent.destroy();
    collector.close();
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function soak(port: number, ms: number, pauseMs: number): Promise<void> {
  const end = performance.now() + ms;
  let done = 0;
  const work = async (worker: number) => {
    for (let turn = worker; performance.now() < end; turn++) {
      await acts[turn % acts.length]?.(port);
      if (pauseMs > 0) await pause(pauseMs);
      done++;
    }
  };
  const heaps: number[] = [];
  const resident: number[] = [];
  const watch = async () => {
    while (performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, sampleMs));
      const memory = (await (await fetch(`http://127.0.0.1:${port}/memory`)).json()) as Memory;
      heaps.push((memory.heapUsed + memory.external) / 2 ** 20);
      resident.push(memory.rss / 2 ** 20);
    }
  };
  await Promise.all([watch(), ...Array.from({ length: workers }, (_, worker) => work(worker))]);
  print(done, ms, heaps, resident);
}

interface Memory {
  heapUsed: number;
  external: number;
  rss: number;
}

function print(done: number, ms: number, heaps: number[], resident: number[]): void {
  const third = Math.floor(heaps.length / 3);
  const median = (values: number[], from: number) =>
    quantile(values.slice(from, from + third), 0.5);
  const growth = median(heaps, heaps.length - third) / median(heaps, 0);
  console.log(`${done} acts in ${(ms / 60_000).toFixed(0)} minutes, ${acts.length} kinds`);
  const line = (name: string, values: number[]) =>
    console.log(
      `${name.padEnd(24)} first third ${median(values, 0).toFixed(1)} MB, second ` +
        `${median(values, third).toFixed(1)} MB, last ${median(values, values.length - third).toFixed(1)} MB`,
    );
  line("heap after a collection", heaps);
  line("resident", resident);
  const verdict = growth <= allowedGrowth ? "✔" : "✘";
  console.log(`growth × ${growth.toFixed(3)}   aim ≤ ${allowedGrowth} ${verdict}`);
  if (growth > allowedGrowth) process.exitCode = 1;
}

/** One request, answered or not: what it gets is the tests' business. */
function ask(target: string, headers: Record<string, string> = {}, body?: string): Act {
  return (port) =>
    new Promise((resolve) => {
      const method = body === undefined ? "GET" : "POST";
      const options = { port, host: "127.0.0.1", path: target, method, headers, agent };
      const outgoing = request(options, (answer) => answer.resume().once("close", resolve));
      outgoing.once("error", () => resolve());
      outgoing.end(body);
    });
}

/** Goes away in the middle. */
function leave(target: string): Act {
  return async (port) => {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    socket.write(`GET ${target} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await new Promise((resolve) => setTimeout(resolve, 10));
    socket.destroy();
  };
}

function raw(text: string): Act {
  return (port) =>
    new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1").on("error", () => {});
      socket.once("close", () => resolve()).resume();
      socket.write(text);
      socket.setTimeout(3000, () => socket.destroy());
    });
}

async function converse(port: number): Promise<void> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
  await new Promise<void>((resolve) => {
    let messages = 0;
    socket.on("open", () => socket.send("hello"));
    socket.on("message", () => (++messages < 20 ? socket.send("hello") : socket.close()));
    socket.on("error", () => {});
    socket.on("close", () => resolve());
  });
}
