/**
 * What the gateway costs a request, alongside nginx as a proxy before the same server (if it is installed): latency at one
 * connection, requests per second at 64, and processor time for each. Targets take turns, so that what else the
 * machine does falls on all of them. Proxies are on core 1, load and server on core 0.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { freePort } from "@spry/test-kit";
import { quantile } from "./figures.ts";
import { generateLoad } from "./http-load.ts";

const rounds = 5;
const secondsPerRound = 3;
const connections = 64;
const calls = 4_000;
const aims = { medianMs: 0.15, p99Ms: 1, rate: 0.6 };

interface Target {
  name: string;
  port: number;
  host: string;
  pid: number;
  rates: number[];
  costs: number[];
}

export async function run(): Promise<void> {
  const children: ChildProcess[] = [];
  const folder = mkdtempSync(path.join(tmpdir(), "spry-bench-"));
  try {
    const backend = await program("gateway-backend.ts", 0);
    children.push(backend.child);
    const gateway = await program("gateway-process.ts", 1, String(backend.port));
    children.push(gateway.child);
    const targetOf = (name: string, host: string, { port, child }: Program): Target => ({
      name,
      port,
      host,
      pid: child.pid ?? 0,
      rates: [],
      costs: [],
    });
    const direct = targetOf("server alone", "hello.default.localhost", backend);
    const targets = [
      targetOf("gateway, Service", "hello.default.localhost", gateway),
      targetOf("gateway, Route", "kn.default.localhost", gateway),
    ];
    const nginx = await startNginx(folder, backend.port);
    if (nginx) children.push(nginx.child);
    if (nginx) targets.push(targetOf("nginx", "hello.default.localhost", nginx));
    for (const target of [direct, ...targets]) {
      await generateLoad(target.port, connections, 2, target.host);
    }
    await measureLatency(direct, targets);
    await measureRates(targets);
  } finally {
    for (const child of children) child.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Program {
  child: ChildProcess;
  port: number;
}

async function program(file: string, core: number, ...args: string[]): Promise<Program> {
  const own = path.join(import.meta.dirname, file);
  const command = ["-c", String(core), process.execPath, own, ...args];
  const child = spawn("taskset", command, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const [port] = (await once(child, "message")) as [number];
  return { child, port };
}

/** With connections that are kept alive, as the gateway keeps them. */
async function startNginx(folder: string, backend: number): Promise<Program | undefined> {
  if (spawnSync("nginx", ["-v"]).error) return undefined;
  const port = await freePort();
  const file = path.join(folder, "nginx.conf");
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 1000000000;
  upstream backend { server 127.0.0.1:${backend}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr;
    }
  }
}`,
  );
  const child = spawn("taskset", ["-c", "1", "nginx", "-c", file], { stdio: "ignore" });
  await untilOpen(port);
  return { child, port };
}

async function untilOpen(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await new Promise((resolve) => {
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function measureLatency(direct: Target, targets: Target[]): Promise<void> {
  const times = new Map([direct, ...targets].map((target) => [target, [] as number[]]));
  for (let round = 0; round < rounds; round++) {
    for (const [target, all] of times) all.push(...(await latencies(target, calls / rounds)));
  }
  const of = (target: Target, q: number) => quantile(times.get(target) ?? [], q);
  console.log(`latency at one connection, ${calls} calls, in ms, and what it adds to the server's`);
  for (const target of [direct, ...targets]) {
    const [median, p99] = [of(target, 0.5), of(target, 0.99)];
    const added = [median - of(direct, 0.5), p99 - of(direct, 0.99)] as const;
    const verdict =
      target.name.startsWith("gateway") && added[0] <= aims.medianMs && added[1] <= aims.p99Ms
        ? "✔"
        : "";
    console.log(
      `${target.name.padEnd(20)} median ${median.toFixed(3)}  p99 ${p99.toFixed(3)}   ` +
        `added: median ${added[0].toFixed(3)}  p99 ${added[1].toFixed(3)} ${verdict}`,
    );
  }
}

/** One request after the other over one connection. */
async function latencies({ port, host }: Target, count: number): Promise<number[]> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await once(socket, "connect");
  const request = `GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`;
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const begin = performance.now();
    socket.write(request);
    await new Promise((resolve) => socket.once("data", resolve));
    times.push(performance.now() - begin);
  }
  socket.destroy();
  return times;
}

async function measureRates(targets: Target[]): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (const target of targets) {
      const before = cpuSeconds(target.pid);
      const begin = performance.now();
      const rate = await generateLoad(target.port, connections, secondsPerRound, target.host);
      const seconds = (performance.now() - begin) / 1000;
      target.rates.push(rate);
      target.costs.push(((cpuSeconds(target.pid) - before) * 1e6) / (rate * seconds));
    }
  }
  const nginx = targets.find(({ name }) => name === "nginx");
  console.log(`\nrequests per second over ${connections} connections, and their processor time`);
  for (const { name, rates, costs } of targets) {
    const [rate, cost] = [quantile(rates, 0.5), quantile(costs, 0.5)];
    const shares = nginx && {
      rate: rate / quantile(nginx.rates, 0.5),
      cost: quantile(nginx.costs, 0.5) / cost,
    };
    const verdict = shares && shares.rate >= aims.rate ? "✔" : "";
    console.log(
      `${name.padEnd(20)} ${rate.toFixed(0).padStart(7)}/s  ${cost.toFixed(1).padStart(6)} µs` +
        (shares
          ? `   of nginx: rate ${shares.rate.toFixed(2)}  by processor time ${shares.cost.toFixed(2)} ${verdict}`
          : ""),
    );
  }
}

/** User and system time of a process so far. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
