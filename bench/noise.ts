/**
 * How long others wait while one tenant makes noise: `npm run bench -- noise --sandbox oci --kinds connections,watches`. Three
 * requests go out every 50 ms on behalf of another tenant: on an open connection to the API server, on a new one, and through the
 * gateway to another tenant's Function. The aim of each: p99 at most three times that of a quiet platform, and none above 500 ms.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { Agent, request as httpsRequest } from "node:https";
import path from "node:path";
import { parseArgs } from "node:util";
import { loadKubeconfig } from "@spry/kube";
import { functionManifest, pause, Platform } from "../test/support/platform.ts";
import { measureUnit, quantile } from "./figures.ts";
import { noises } from "./noise-client.ts";

const everyMs = 50;
const allowedMs = 500;
const allowedFactor = 3;
const tenant = "mallory";
const other = "alice";

type Probe = () => Promise<unknown>;
/** Milliseconds of each answer, by probe. */
type Waits = Record<string, number[]>;

export async function run(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: {
      kinds: { type: "string", default: Object.keys(noises).join(",") },
      sandbox: { type: "string" },
      seconds: { type: "string", default: "20" },
    },
  });
  if (values.sandbox) process.env["SPRY_TEST_SANDBOX"] = values.sandbox;
  console.log(`ν = ${measureUnit().toFixed(0)} ms`);
  const platform = new Platform();
  await platform.start();
  const probes = await prepare(platform);
  try {
    await measure(probes, 5_000);
    const quiet = await measure(probes, Number(values.seconds) * 1_000);
    report("quiet", quiet, quiet);
    for (const kind of values.kinds.split(",")) {
      const noise = await makeNoise(platform, kind);
      report(kind, await measure(probes, Number(values.seconds) * 1_000), quiet);
      await end(noise);
      await settle(probes);
    }
  } finally {
    await platform.remove();
  }
}

/** Two tenants, each with a Function of its own; what is asked for the other one. */
async function prepare(platform: Platform): Promise<Record<string, Probe>> {
  for (const name of [tenant, other]) {
    await platform.k(`create namespace ${name}`);
    await platform.k(`create serviceaccount tenant -n ${name}`);
    const binding = `--serviceaccount=${name}:tenant -n ${name}`;
    await platform.k(`create rolebinding tenant --clusterrole=edit ${binding}`);
    await platform.k(`create rolebinding functions --clusterrole=kyma-functions-edit ${binding}`);
    const source = "module.exports = { main: () => 'here' };";
    await platform.k("apply -f -", functionManifest("own", source, {}, { namespace: name }));
  }
  for (const name of [tenant, other])
    await platform.callUntil(`own.${name}`, ({ body }) => body === "here");
  const { ca, cert, key } = credentials(platform);
  const open = new Agent({ ca, cert, key, keepAlive: true });
  const get = (agent: Agent) =>
    new Promise((resolve, reject) => {
      const target = new URL(`/api/v1/namespaces/${other}`, platform.endpoints.apiServer);
      const call = httpsRequest(target, { agent }, (response) =>
        response.statusCode === 200
          ? response.resume().on("end", resolve)
          : reject(new Error(`answered ${response.statusCode}`)),
      );
      call.on("error", reject).end();
    });
  return {
    open: () => get(open),
    new: async () => {
      const agent = new Agent({ ca, cert, key, maxCachedSessions: 0 });
      await get(agent).finally(() => agent.destroy());
    },
    gateway: () => platform.call(`own.${other}`),
  };
}

function credentials(platform: Platform) {
  const {
    certificateAuthority: ca,
    clientCertificate: cert,
    clientKey: key,
  } = loadKubeconfig(platform.kubeconfig);
  return { ca, cert, key } as { ca: string; cert: string; key: string };
}

/** A request of each kind every 50 ms, whether earlier ones are answered or not. */
async function measure(probes: Record<string, Probe>, ms: number): Promise<Waits> {
  const waits: Waits = {};
  const all: Promise<unknown>[] = [];
  const begin = performance.now();
  for (let due = begin; due < begin + ms; due += everyMs) {
    if (due > performance.now()) await pause(due - performance.now());
    for (const [name, probe] of Object.entries(probes)) {
      const sent = performance.now();
      const times = (waits[name] ??= []);
      const record = () => times.push(performance.now() - sent);
      all.push(probe().then(record));
    }
  }
  await Promise.all(all);
  return waits;
}

/** Until ten requests of each kind in a row are answered quickly. */
async function settle(probes: Record<string, Probe>): Promise<void> {
  for (let calm = 0; calm < 10; await pause(everyMs)) {
    const begin = performance.now();
    await Promise.allSettled(Object.values(probes).map((probe) => probe()));
    calm = performance.now() - begin < 100 ? calm + 1 : 0;
  }
}

async function makeNoise(platform: Platform, kind: string): Promise<ChildProcess> {
  const token = (await platform.k(`create token tenant -n ${tenant} --duration=2h`)).trim();
  const { apiServer, gateway, publisher } = platform.endpoints;
  const { ca } = credentials(platform);
  const options = { kind, namespace: tenant, token, ca, apiServer, gateway, publisher };
  const program = path.join(import.meta.dirname, "noise-client.ts");
  return spawn(process.execPath, [program, JSON.stringify(options)], {
    stdio: ["ignore", "ignore", "inherit"],
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}

function report(kind: string, waits: Waits, quiet: Waits): void {
  for (const [name, times] of Object.entries(waits)) {
    const [median, p99, max] = [0.5, 0.99, 1].map((q) => quantile(times, q)) as [
      number,
      number,
      number,
    ];
    const limit = allowedFactor * quantile(quiet[name] ?? [], 0.99);
    const isKept = waits === quiet || (p99 <= limit && max <= allowedMs);
    const figures = [median, p99, max].map((ms) => `${ms.toFixed(0).padStart(5)} ms`).join(" ");
    console.log(
      `${kind.padEnd(12)} ${name.padEnd(8)} median, p99, max ${figures}   aim p99 ≤ ${limit.toFixed(0)} ms, max ≤ ${allowedMs} ms ${isKept ? "✔" : "✘"}`,
    );
    if (!isKept) process.exitCode = 1;
  }
}
