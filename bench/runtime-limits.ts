/**
 * A Function in a small container: spawn to first 200, and 50 requests a second, under CPU limits. Open
 * loop: each latency counts from the moment that its request was due. As in a container all listen on every
 * address; who gives Node.js one has it load what resolves names.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { pause } from "../test/support/platform.ts";
import { type CpuLimit, limitCpu, noCpuLimits } from "./cgroup.ts";
import { quantile } from "./figures.ts";
import { layOutPython, makeEnvironment, startPython } from "./python-server.ts";
import { firstAnswer, layOut, makeRuntime, startServer } from "./runtime-server.ts";

const ratePerSecond = 50;
const seconds = 5;
const rounds = 5;
/** Thousandths of a core; the last is the limit of the preset XS. */
const limits = "20,50,150";

const bare = `require("node:http").createServer((request, response) => {
  response.setHeader("Access-Control-Allow-Origin", "*");
  response.end("Hello World!");
}).listen(Number(process.env.FUNC_PORT));`;
const everyAddress = { SERVER_HOST: "" };

/** Starts it in a control group. */
type Start = (group: CpuLimit) => { port: number; stop(): Promise<void> };

interface Row {
  starts: number[];
  latencies: number[];
}

export async function run(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: { limits: { type: "string", default: limits } },
  });
  const reason = noCpuLimits();
  if (reason) return console.log(`skipped: ${reason}`);
  const dir = mkdtempSync(path.join(tmpdir(), "b-"));
  try {
    const file = path.join(dir, "bare.cjs");
    writeFileSync(file, bare);
    const handler = (text: string) => ({ "handler.js": text });
    const runtime = await makeRuntime();
    const node =
      (started: string): Start =>
      (group) =>
        startServer(started, everyAddress, group);
    const interpreter = makeEnvironment(path.join(dir, "python"));
    const python = (name: string, text: string): Start => {
      const started = layOutPython(path.join(dir, name), text);
      return ({ prefix }) => startPython(interpreter, started, everyAddress, prefix);
    };
    const targets = {
      "bare node:http": node(file),
      "main(event, context)": node(
        layOut(path.join(dir, "main"), runtime, handler('exports.main = () => "Hello World!";')),
      ),
      "fetch(request)": node(
        layOut(
          path.join(dir, "fetch"),
          runtime,
          handler('exports.fetch = () => new Response("Hello World!");'),
        ),
      ),
      "Python, def main": python("sync", 'def main(event, context): return "Hello World!"'),
      "Python, async def main": python(
        "async",
        'async def main(event, context): return "Hello World!"',
      ),
    };
    for (const limit of values.limits.split(",")) await measure(Number(limit), targets);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function measure(limit: number, targets: Record<string, Start>): Promise<void> {
  const rows: Record<string, Row> = {};
  for (let round = 0; round < rounds; round++) {
    const inTurn = Object.entries(targets);
    for (const [name, start] of round % 2 ? inTurn.toReversed() : inTurn) {
      const row = (rows[name] ??= { starts: [], latencies: [] });
      const group = limitCpu(limit);
      const begin = performance.now();
      const server = start(group);
      try {
        await firstAnswer(server.port, 5);
        row.starts.push(performance.now() - begin);
        await pause(1000);
        row.latencies.push(...(await constantRate(server.port)));
      } finally {
        await server.stop();
        await group.remove();
      }
    }
  }
  console.log(`\nlimit ${limit}m, ${ratePerSecond} requests/s for ${seconds} s, ${rounds} rounds`);
  for (const [name, { starts, latencies }] of Object.entries(rows)) {
    const average = latencies.reduce((sum, each) => sum + each, 0) / latencies.length;
    const figure = (ms: number) => `${ms.toFixed(1).padStart(7)} ms`;
    console.log(
      `${name.padEnd(24)} first 200 ${figure(quantile(starts, 0.5))}   average ${figure(average)}` +
        `   p95 ${figure(quantile(latencies, 0.95))}   p99 ${figure(quantile(latencies, 0.99))}`,
    );
  }
}

async function constantRate(port: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true });
  const begin = performance.now();
  const answers = Array.from({ length: ratePerSecond * seconds }, async (_, index) => {
    const due = begin + (index * 1000) / ratePerSecond;
    await pause(Math.max(0, due - performance.now()));
    await new Promise<void>((resolve, reject) => {
      const asked = request({ port, host: "127.0.0.1", agent }, (answer) => {
        answer.resume().once("end", resolve);
      });
      asked.once("error", reject).end();
    });
    return performance.now() - due;
  });
  const latencies = await Promise.all(answers);
  agent.destroy();
  return latencies;
}
