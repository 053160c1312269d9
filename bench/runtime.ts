/**
 * What our server costs a Function: the Node.js runtime next to a bare `node:http` server that returns
 * the same bytes, fastify and the Functions Framework. Spawn to first 200, requests per second over keep-alive, and memory; the targets take
 * turns in every round, so that what else the machine does falls on all of them.
 * `--flags=--max-semi-space-size=4` starts every target for the rates with those flags of Node.js', as containers of 128 MiB have them.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Writable } from "node:stream";
import { parseArgs } from "node:util";
import { type RuntimeFile } from "@spry/runtime-nodejs";
import { pause } from "../test/support/platform.ts";
import { measureUnit, quantile, timeLine } from "./figures.ts";
import { generateLoad } from "./http-load.ts";
import { installPackages } from "./install-packages.ts";
import { firstAnswer, layOut, makeRuntime, startServer } from "./runtime-server.ts";
import { canPin, startCollector } from "./span-collector.ts";

const starts = 31;
const rounds = 7;
const connections = 64;
const secondsPerRound = 2;
/** What V8 still compiles would count for the server with more code: it is done after some 80,000 requests. */
const warmUpSeconds = 3;

interface Target {
  name: string;
  file: string;
  env: Record<string, string>;
  starts: number[];
  rates: number[];
  /** Microseconds of the server's CPU time for a request: what else the machine does changes it little. */
  costs: number[];
  memory: { idle: number[]; loaded: number[] };
}

const hello = { "handler.js": 'module.exports = { main: () => "Hello World!" };' };
const bare = `require("node:http").createServer((request, response) => {
  response.setHeader("Access-Control-Allow-Origin", "*");
  response.end("Hello World!");
}).listen(Number(process.env.FUNC_PORT), "127.0.0.1");`;

/** By package: as its documentation has it, with the same answer. */
const neighbours: Record<string, string> = {
  fastify: `const app = require("fastify")();
app.get("/", (request, reply) => reply.header("Access-Control-Allow-Origin", "*").send("Hello World!"));
app.listen({ port: Number(process.env.FUNC_PORT), host: "127.0.0.1" });`,
  "@google-cloud/functions-framework": `const { http, getFunction } = require("@google-cloud/functions-framework");
http("hello", (request, response) => response.set("Access-Control-Allow-Origin", "*").send("Hello World!"));
require("@google-cloud/functions-framework/testing").getTestServer("hello").listen(Number(process.env.FUNC_PORT), "127.0.0.1");`,
};

export async function run(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: { flags: { type: "string", default: "" } },
  });
  const dir = mkdtempSync(path.join(tmpdir(), "b-"));
  const collector = await startCollector();
  try {
    const runtime = await makeRuntime();
    const targets = prepareTargets(dir, runtime, collector.endpoint);
    const unit = await measureStarts(targets);
    const warm = await measureWarmStarts(dir, runtime);
    await measureRates(targets, values.flags.split(" ").filter(Boolean));
    print(targets, unit);
    console.log(timeLine("\na warm process: its Function to first 200", warm, unit, 0.8));
  } finally {
    collector.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

function prepareTargets(dir: string, runtime: RuntimeFile[], collector: string): Target[] {
  const make = (name: string, file: string, env: Record<string, string> = {}): Target => {
    const memory = { idle: [], loaded: [] };
    return { name, file, env, starts: [], rates: [], costs: [], memory };
  };
  let made = 0;
  // Paths about as long as in an image: Node.js looks at them character by character until its optimising
  // compiler comes, which with longer ones happens at the start, and is 2 MB.
  const target = (name: string, files: Record<string, string>, env = {}) =>
    make(name, layOut(path.join(dir, String(made++)), runtime, files), env);
  const others = path.join(dir, "others");
  const failure = installPackages(others, Object.keys(neighbours));
  if (failure) console.log(`without fastify and the Functions Framework: ${failure}`);
  const program = (name: string, text: string) => {
    const file = path.join(others, `${name.replaceAll(/\W+/g, "-")}.cjs`);
    mkdirSync(others, { recursive: true });
    writeFileSync(file, text);
    return make(name, file);
  };
  return [
    program("bare node:http", bare),
    ...(failure ? [] : Object.entries(neighbours).map(([name, text]) => program(name, text))),
    target("main(event, context)", hello),
    target(
      "main(req, res)",
      { "handler.js": 'exports.main = (req, res) => res.end("Hello World!");' },
      { FUNC_RUNTIME: "nodejs26" },
    ),
    target("fetch(request)", {
      "handler.js": 'exports.fetch = () => new Response("Hello World!");',
    }),
    target("main, concurrency limited", hello, { SERVER_CONCURRENCY: "100" }),
    target("main, spans exported", hello, {
      TRACE_COLLECTOR_ENDPOINT: collector,
    }),
  ];
}

/** Fills in `starts`; returns ν, measured in the same minutes. */
async function measureStarts(targets: Target[]): Promise<number> {
  const units: number[] = [];
  for (let round = 0; round < starts; round++) {
    units.push(measureUnit(1));
    for (const target of shuffled(targets)) {
      const begin = performance.now();
      const server = startServer(target.file, target.env);
      await firstAnswer(server.port);
      target.starts.push(performance.now() - begin);
      await server.stop();
    }
  }
  return quantile(units, 0.5);
}

async function measureRates(targets: Target[], flags: string[]): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (const target of shuffled(targets)) {
      const server = startServer(target.file, target.env, { prefix: onCore(1), flags });
      await firstAnswer(server.port);
      await pause(1500);
      target.memory.idle.push(residentMb(server.pid));
      await generateLoad(server.port, connections, warmUpSeconds);
      const before = cpuMicroseconds(server.pid);
      const rate = await generateLoad(server.port, connections, secondsPerRound);
      target.rates.push(rate);
      target.costs.push((cpuMicroseconds(server.pid) - before) / (rate * secondsPerRound));
      target.memory.loaded.push(residentMb(server.pid));
      await server.stop();
    }
  }
}

/** On a core of its own, if the machine can do that. */
function onCore(core: number): string[] {
  return canPin ? ["taskset", "-c", String(core)] : [];
}

/** From the moment that a waiting process is handed its Function. */
async function measureWarmStarts(dir: string, runtime: RuntimeFile[]): Promise<number[]> {
  const file = layOut(path.join(dir, "warm"), runtime, hello);
  const times: number[] = [];
  for (let round = 0; round < starts; round++) {
    const child = spawn(process.execPath, [file], {
      env: { SPRY_WARM_FD: "3" },
      stdio: ["ignore", "ignore", "ignore", "pipe"],
    });
    await pause(500);
    const port = 20_500 + round;
    const env = { SERVER_HOST: "127.0.0.1", FUNC_PORT: String(port), FUNC_NAME: "hello" };
    const message = { directory: path.join(path.dirname(file), "function"), env };
    const begin = performance.now();
    (child.stdio[3] as Writable).end(`${JSON.stringify(message)}\n`);
    await firstAnswer(port);
    times.push(performance.now() - begin);
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  return times;
}

/** NaN where the system does not tell. */
function residentMb(pid: number): number {
  try {
    const [, kb] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kb) / 1024;
  } catch {
    return NaN;
  }
}

function cpuMicroseconds(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(" ");
    // User and system time, in ticks of 10 ms.
    return (Number(fields[13]) + Number(fields[14])) * 10_000;
  } catch {
    return NaN;
  }
}

function print(targets: Target[], unit: number): void {
  console.log(
    `ν = ${unit.toFixed(1)} ms (median of node -e 0, Node.js ${process.versions.node})\n`,
  );
  for (const { name, starts: times } of targets)
    console.log(timeLine(`${name}: spawn to first 200`, times, unit, 2.2));
  const baseRates = targets[0]?.rates ?? [];
  const baseCost = quantile(targets[0]?.costs ?? [], 0.5);
  const baseMemory = quantile(targets[0]?.memory.idle ?? [], 0.5);
  console.log(
    `\nkeep-alive, ${connections} connections, median of ${rounds} rounds; a rate's share is of the same round's`,
  );
  for (const { name, rates, costs, memory } of targets) {
    const cost = quantile(costs, 0.5);
    const rate = quantile(rates, 0.5);
    const idle = quantile(memory.idle, 0.5);
    const loaded = quantile(memory.loaded, 0.5);
    const ratio = (idle / baseMemory).toFixed(2);
    const shares = rates.map((each, round) => each / (baseRates[round] ?? NaN));
    console.log(
      `${name.padEnd(30)} ${rate.toFixed(0).padStart(7)}/s (${Math.min(...rates).toFixed(0)} to ${Math.max(...rates).toFixed(0)}) ${(100 * quantile(shares, 0.5)).toFixed(0).padStart(4)} %` +
        `   ${cost.toFixed(1).padStart(6)} µs CPU each (${((100 * baseCost) / cost).toFixed(0)} %)` +
        `   resident ${idle.toFixed(0)} MB (× ${ratio}), after the load ${loaded.toFixed(0)} MB`,
    );
  }
}

function shuffled<T>(values: readonly T[]): T[] {
  return values
    .map((value) => ({ value, order: Math.random() }))
    .toSorted((a, b) => a.order - b.order)
    .map(({ value }) => value);
}
