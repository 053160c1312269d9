/**
 * What our server costs a Python Function: next to uvicorn with uvloop and httptools on a raw ASGI application, and bottle on cheroot with
 * a thread for each request, as the server we replace arranges them. Spawn to first 200, requests per second over
 * keep-alive, and memory; the targets take turns in every round. `npm run bench -- runtime-python`
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Writable } from "node:stream";
import { parseArgs } from "node:util";
import { pause } from "../test/support/platform.ts";
import { quantile } from "./figures.ts";
import { generateLoad } from "./http-load.ts";
import { memoryOfTree } from "./memory.ts";
import {
  command,
  layOutPython,
  makeEnvironment,
  nextPort,
  pythonEntry,
  startPython,
} from "./python-server.ts";
import { firstAnswer } from "./runtime-server.ts";

const connections = 32;
const packages = ["uvicorn", "uvloop", "httptools", "bottle", "cheroot"];

interface Target {
  name: string;
  python: string;
  file: string;
  env: Record<string, string>;
  /** What it is compared with, and how much of its rate is aimed at. */
  beside?: [name: string, ratio: number];
  starts: number[];
  rates: number[];
  memory: number[];
}

const uvicorn = `import os, uvicorn
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html; charset=UTF-8"), (b"content-length", b"12")]})
    await send({"type": "http.response.body", "body": b"Hello World!"})
uvicorn.run(app, host="127.0.0.1", port=int(os.environ["FUNC_PORT"]), loop="uvloop", http="httptools", lifespan="off", access_log=False, log_level="error")
`;

const cheroot = `import os, queue, threading, bottle
from cheroot import wsgi
def main(event, context): return "Hello World!"
@bottle.route("/<:re:.*>", method=["GET", "POST"])
def handle():
    answers = queue.Queue()
    request = bottle.request.copy()
    thread = threading.Thread(target=lambda: answers.put(main({"extensions": {"request": request}}, {})))
    thread.start()
    return answers.get(timeout=180)
wsgi.Server(("127.0.0.1", int(os.environ["FUNC_PORT"])), bottle.default_app(), numthreads=50, request_queue_size=1024).start()
`;

const handlers = {
  async: `async def main(event, context): return "Hello World!"`,
  sync: `def main(event, context): return "Hello World!"`,
};

export async function run(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: {
      rounds: { type: "string", default: "5" },
      starts: { type: "string", default: "15" },
    },
  });
  const dir = mkdtempSync(path.join(tmpdir(), "spry-bench-"));
  const collector = createServer((request, response) => {
    request.resume().once("end", () => response.end("{}"));
  }).listen(0, "127.0.0.1");
  await once(collector, "listening");
  const { port } = collector.address() as AddressInfo;
  try {
    const targets = prepare(dir, `http://127.0.0.1:${port}/v1/traces`);
    const floors = await measureStarts(targets, Number(values.starts));
    const warm = await measureWarmStarts(targets, Number(values.starts));
    for (let round = 0; round < Number(values.rounds); round++)
      for (const target of round % 2 ? targets.toReversed() : targets) await measureRate(target);
    print(targets, floors, warm);
  } finally {
    collector.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

function prepare(dir: string, collector: string): Target[] {
  const environment = (name: string) => makeEnvironment(path.join(dir, name));
  const [plain, python] = [environment("plain"), environment("with-packages")];
  command(python, ["-m", "pip", "install", "-q", ...packages]);
  const make = (name: string, file: string, options: Partial<Target> = {}): Target => {
    return { name, python, file, env: {}, starts: [], rates: [], memory: [], ...options };
  };
  const program = (name: string, text: string) => {
    const file = path.join(dir, `${name}.py`);
    writeFileSync(file, text);
    return file;
  };
  const handler = (kind: keyof typeof handlers) =>
    layOutPython(path.join(dir, kind), handlers[kind]);
  const [asyncFile, syncFile] = [handler("async"), handler("sync")];
  const bare = "uvicorn, raw ASGI";
  const env = { TRACE_COLLECTOR_ENDPOINT: collector };
  return [
    make(bare, program("bare", uvicorn)),
    make("bottle on cheroot", program("original", cheroot)),
    make("async main, uvloop", asyncFile, { beside: [bare, 0.85] }),
    make("async main, asyncio", asyncFile, { python: plain, beside: [bare, 0.85] }),
    make("async main, spans", asyncFile, { env, beside: ["async main, uvloop", 0.9] }),
    make("sync main", syncFile, { python: plain, beside: ["bottle on cheroot", 7] }),
    make("sync main, spans", syncFile, { python: plain, env, beside: ["sync main", 0.9] }),
  ];
}

/** What no server can be faster than: an empty program, and one that has what runs coroutines. */
const floorPrograms = { empty: "0", asyncio: "import asyncio", uvloop: "import uvloop" };
type Floors = Record<keyof typeof floorPrograms, number>;

/** Fills in `starts`; returns the medians of the floors, measured in the same minutes. */
async function measureStarts(targets: Target[], rounds: number): Promise<Floors> {
  const times = { empty: [], asyncio: [], uvloop: [] } as Record<keyof Floors, number[]>;
  const [{ python: withPackages } = { python: "python3" }] = targets;
  for (let round = 0; round < rounds; round++) {
    for (const target of targets) {
      const unitBegin = performance.now();
      spawnSync(target.python, ["-c", floorPrograms.empty], { env: {} });
      times.empty.push(performance.now() - unitBegin);
      const begin = performance.now();
      const server = startPython(target.python, target.file, target.env);
      await firstAnswer(server.port);
      target.starts.push(performance.now() - begin);
      await server.stop();
    }
    for (const name of ["asyncio", "uvloop"] as const) {
      const begin = performance.now();
      spawnSync(withPackages, ["-c", floorPrograms[name]], { env: {} });
      times[name].push(performance.now() - begin);
    }
  }
  const median = (name: keyof Floors) => quantile(times[name], 0.5);
  return { empty: median("empty"), asyncio: median("asyncio"), uvloop: median("uvloop") };
}

/** From the moment that a waiting process is handed its Function, next to `python3 -c 0`: the ratio of the medians. */
async function measureWarmStarts(targets: Target[], rounds: number): Promise<Map<string, number>> {
  const ratios = new Map<string, number>();
  for (const { name, python, file } of targets.filter(({ file: each }) =>
    each.endsWith(pythonEntry),
  )) {
    const units: number[] = [];
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const child = spawn(python, [file], {
        env: { SPRY_WARM_FD: "3" },
        stdio: ["ignore", "ignore", "ignore", "pipe"],
        detached: true,
      });
      await pause(500);
      const unitBegin = performance.now();
      spawnSync(python, ["-c", "0"], { env: {} });
      units.push(performance.now() - unitBegin);
      const port = nextPort();
      const env = { SERVER_HOST: "127.0.0.1", FUNC_PORT: String(port), FUNC_NAME: "hello" };
      const directory = path.join(path.dirname(file), "../function");
      const begin = performance.now();
      (child.stdio[3] as Writable).end(`${JSON.stringify({ directory, env })}\n`);
      await firstAnswer(port);
      times.push(performance.now() - begin);
      process.kill(-(child.pid ?? 0), "SIGKILL");
      await once(child, "exit");
    }
    ratios.set(name, quantile(times, 0.5) / quantile(units, 0.5));
  }
  return ratios;
}

async function measureRate(target: Target): Promise<void> {
  const pinned = ["taskset", "-c", "1"];
  const server = startPython(target.python, target.file, target.env, pinned);
  await firstAnswer(server.port);
  await pause(500);
  target.memory.push(memoryOfTree(server.pid) / 2 ** 20);
  await generateLoad(server.port, connections, 1);
  target.rates.push(await generateLoad(server.port, connections, 2));
  await server.stop();
}

function print(targets: Target[], floors: Floors, warm: Map<string, number>): void {
  const unit = floors.empty;
  const floor = (name: keyof Floors) =>
    `python3 -c "${floorPrograms[name]}": ${floors[name].toFixed(1)} ms (× ${(floors[name] / unit).toFixed(2)})`;
  console.log(`${floor("empty")}, ${floor("asyncio")}, ${floor("uvloop")}, medians\n`);
  const median = (values: number[]) => quantile(values, 0.5);
  const bareMemory = median(targets[0]?.memory ?? []);
  for (const { name, starts, rates, memory, beside } of targets) {
    const [started, rate, mb] = [median(starts), median(rates), median(memory)];
    let aim = "";
    if (beside) {
      const base = targets.find((each) => each.name === beside[0])?.rates ?? [];
      const ratio = rate / median(base);
      aim = `× ${ratio.toFixed(2)} of ${beside[0]}, aim ≥ ${beside[1]} ${ratio >= beside[1] ? "✔" : "✘"}`;
    }
    const warmRatio = warm.get(name);
    const warmPart = warmRatio === undefined ? "" : `, warm × ${warmRatio.toFixed(2)}`;
    console.log(
      `${name.padEnd(22)} start ${started.toFixed(0).padStart(4)} ms (× ${(started / unit).toFixed(2)}${warmPart})` +
        `   ${mb.toFixed(1)} MB (× ${(mb / bareMemory).toFixed(2)})   ${rate.toFixed(0).padStart(6)}/s   ${aim}`,
    );
  }
}
