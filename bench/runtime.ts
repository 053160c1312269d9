/**
 * What our server costs a Function: the Node.js runtime beside a bare `node:http` server that returns
 * the same bytes. Spawn to first 200, requests per second over keep-alive, and memory; the targets take
 * turns in every round, so that what else the machine does falls on all of them.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { entry } from "@spry/runtime-nodejs";
import { buildSync } from "esbuild";
import { measureUnit, quantile, timeLine } from "./figures.ts";
import { pause } from "../test/support/platform.ts";
import { generateLoad } from "./http-load.ts";

const starts = 31;
const rounds = 7;
const connections = 64;
const secondsPerRound = 2;

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

export async function run(): Promise<void> {
  const dir = mkdtempSync(path.join(tmpdir(), "spry-bench-"));
  try {
    const targets = prepareTargets(dir);
    const unit = await measureStarts(targets);
    await measureRates(targets);
    print(targets, unit);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function prepareTargets(dir: string): Target[] {
  const bundle = path.join(dir, "server.cjs");
  buildSync({
    entryPoints: [entry],
    outfile: bundle,
    bundle: true,
    platform: "node",
    target: "node22",
    format: "cjs",
  });
  const server = readFileSync(bundle, "utf8");
  const target = (name: string, files: Record<string, string>, env = {}): Target => {
    const home = path.join(dir, name.replaceAll(/\W+/g, "-"));
    mkdirSync(path.join(home, "function"), { recursive: true });
    for (const [file, text] of Object.entries(files))
      writeFileSync(path.join(home, "function", file), text);
    const file = path.join(home, "server.cjs");
    writeFileSync(file, name === "bare node:http" ? bare : server);
    const memory = { idle: [], loaded: [] };
    return { name, file, env, starts: [], rates: [], costs: [], memory };
  };
  return [
    target("bare node:http", {}),
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
      TRACE_COLLECTOR_ENDPOINT: "http://127.0.0.1:9/v1/traces",
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
      const server = startServer(target);
      await firstAnswer(server.port);
      target.starts.push(performance.now() - begin);
      await server.stop();
    }
  }
  return quantile(units, 0.5);
}

async function measureRates(targets: Target[]): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (const target of shuffled(targets)) {
      const server = startServer(target, 1);
      await firstAnswer(server.port);
      await pause(1500);
      target.memory.idle.push(residentMb(server.pid));
      await generateLoad(server.port, connections, 0.5);
      const before = cpuMicroseconds(server.pid);
      const rate = await generateLoad(server.port, connections, secondsPerRound);
      target.rates.push(rate);
      target.costs.push((cpuMicroseconds(server.pid) - before) / (rate * secondsPerRound));
      target.memory.loaded.push(residentMb(server.pid));
      await server.stop();
    }
  }
}

let nextPort = 18_000 + (process.pid % 2000);

/** On a core of its own, if one is given and the machine can do that. */
function startServer({ file, env }: Target, core?: number) {
  const port = nextPort++;
  const pinned = core !== undefined && canPin ? ["-c", String(core), process.execPath] : [];
  const command = pinned.length > 0 ? "taskset" : process.execPath;
  const child: ChildProcess = spawn(command, [...pinned, file], {
    env: {
      SERVER_HOST: "127.0.0.1",
      FUNC_PORT: String(port),
      FUNC_NAME: "hello",
      FUNC_RUNTIME: "nodejs24",
      ...env,
    },
    stdio: "ignore",
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  return { port, pid: child.pid ?? 0, stop };
}

const canPin = spawnSync("taskset", ["-c", "1", "true"]).status === 0;

/** Asks again until somebody listens, without a pause that would be measured. */
function firstAnswer(port: number): Promise<void> {
  return new Promise((resolve) => {
    const attempt = () => {
      const socket = connect(port, "127.0.0.1");
      socket.once("error", () => setTimeout(attempt, 1));
      socket.once("data", (data) => {
        if (!data.toString().startsWith("HTTP/1.1 200")) throw new Error(data.toString());
        socket.destroy();
        resolve();
      });
      socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    };
    attempt();
  });
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
  const base = quantile(targets[0]?.rates ?? [], 0.5);
  const baseCost = quantile(targets[0]?.costs ?? [], 0.5);
  const baseMemory = quantile(targets[0]?.memory.idle ?? [], 0.5);
  console.log(`\nkeep-alive, ${connections} connections, median of ${rounds} rounds`);
  for (const { name, rates, costs, memory } of targets) {
    const cost = quantile(costs, 0.5);
    const rate = quantile(rates, 0.5);
    const idle = quantile(memory.idle, 0.5);
    const loaded = quantile(memory.loaded, 0.5);
    const ratio = (idle / baseMemory).toFixed(2);
    console.log(
      `${name.padEnd(30)} ${rate.toFixed(0).padStart(7)}/s ${((100 * rate) / base).toFixed(0).padStart(4)} %` +
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
