/**
 * What a build costs: the builder's process from start to pushed, an edit of the code beside 50 MB of
 * dependencies, a second Function on the same base, an installation from a lock file beside `npm ci`
 * alone, and two hundred Functions applied at once.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { functions, type Function } from "@spry/function";
import {
  assembleImage,
  builderEntry,
  createLayer,
  createRegistry,
  parseImageName,
  pushImage,
  RegistryClient,
} from "@spry/image";
import { getCondition, httpsTransport, KubeClient, loadKubeconfig } from "@spry/kube";
import { buildSync } from "esbuild";
import { functionManifest, pause, Platform } from "../test/support/platform.ts";
import { measureUnit, quantile, timeLine } from "./figures.ts";
import { type PackageRegistry, startPackageRegistry } from "./package-registry.ts";

const rounds = 15;
const installRounds = 5;
const together = 200;
const baseBytes = 20 * 1024 * 1024;

interface Bench {
  dir: string;
  program: string;
  /** Of the registry, and of a way to it that counts. */
  host: string;
  counting: { host: string; sent: () => number };
  next: () => number;
}

export async function run(): Promise<void> {
  const dir = mkdtempSync(path.join(tmpdir(), "spry-bench-"));
  const registry = createRegistry({ dir: path.join(dir, "registry") });
  const server = await registry.listen({ host: "127.0.0.1", port: 0 });
  const proxy = await startCounter(server.port);
  let number = 0;
  const bench: Bench = {
    dir,
    program: path.join(dir, "builder.cjs"),
    host: `127.0.0.1:${server.port}`,
    counting: proxy,
    next: () => ++number,
  };
  try {
    buildSync({
      entryPoints: [builderEntry],
      outfile: bench.program,
      bundle: true,
      platform: "node",
      target: "node22",
      format: "cjs",
    });
    await pushBase(bench.host);
    const unit = measureUnit();
    console.log(
      `ν = ${unit.toFixed(1)} ms (median of node -e 0, Node.js ${process.versions.node})\n`,
    );
    await measurePlain(bench);
    await measureEdit(bench);
    await measureInstall(bench);
    await measureMany();
  } finally {
    proxy.close();
    await server.close();
    await registry.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** A base of some size, so that it would show if it were sent. */
async function pushBase(host: string): Promise<void> {
  const content = Buffer.alloc(baseBytes, "base image ");
  for (let at = 0; at < content.length; at += 64)
    content.writeUInt32LE((at * 2654435761) >>> 0, at);
  const layers = [await createLayer([{ path: "usr/src/app/server.cjs", content }])];
  const image = assembleImage({ layers });
  await pushImage(new RegistryClient(), image, parseImageName(`${host}/spry/nodejs24:1`));
}

async function measurePlain(bench: Bench): Promise<void> {
  const times: number[] = [];
  const units: number[] = [];
  const source = (text: string) => ({
    "handler.js": `exports.main = () => ${JSON.stringify(text)}`,
  });
  await build(bench, "warm-up", source("warm-up"));
  for (let round = 0; round < rounds; round++) {
    units.push(measureUnit(3));
    times.push(await build(bench, `plain-${round}`, source(`number ${round}`)));
  }
  const unit = quantile(units, 0.5);
  console.log(timeLine("builder, no dependencies: start to pushed", times, unit, 8));
  const before = bench.counting.sent();
  await build(bench, "second", source("second"), { host: bench.counting.host });
  const sent = bench.counting.sent() - before;
  const verdict = sent < 100_000 ? "✔" : "✘";
  console.log(
    `second Function on a base of ${mb(baseBytes)}: ${kb(sent)} sent in all, requests included (aim: base 0 ${verdict})`,
  );
}

async function measureEdit(bench: Bench): Promise<void> {
  const packages = await startPackageRegistry(50, 10, 100 * 1024);
  try {
    const source = (text: string) => ({ "handler.js": text, ...packages.files });
    await build(bench, "heavy", source("// first"), { packages });
    const times: number[] = [];
    const units: number[] = [];
    for (let round = 0; round < rounds; round++) {
      units.push(measureUnit(3));
      times.push(await build(bench, "heavy", source(`// edit ${round}`), { packages }));
    }
    console.log(timeLine("code edit beside 50 MB of dependencies", times, quantile(units, 0.5), 8));
    const before = bench.counting.sent();
    const last = { packages, host: bench.counting.host };
    await build(bench, "heavy", source("// the last edit"), last);
    const sent = bench.counting.sent() - before;
    console.log(
      `bytes sent for such an edit, requests included: ${kb(sent)} (aim < 100 kB ${sent < 100_000 ? "✔" : "✘"})`,
    );
  } finally {
    packages.close();
  }
}

/** Both with a lock file and npm's cache full; the builder packs, hashes and sends besides. */
async function measureInstall(bench: Bench): Promise<void> {
  const packages = await startPackageRegistry(60, 20, 4 * 1024);
  const cache = path.join(bench.dir, "npm-cache");
  const alone: number[] = [];
  const built: number[] = [];
  const reused: number[] = [];
  try {
    for (let round = -1; round < installRounds; round++) {
      const directory = path.join(bench.dir, `ci-${round}`);
      write(directory, packages.files);
      const begin = performance.now();
      const flags = ["ci", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error"];
      await finish("npm", flags, { npm_config_cache: cache }, directory);
      const ci = performance.now() - begin;
      const source = { "handler.js": "// x", ...packages.files };
      const name = `install-${round}`;
      const own = { packages, cache, layers: `layers-${round}` };
      const first = await build(bench, name, source, own);
      const second = await build(bench, `${name}-again`, source, own);
      if (round < 0) continue;
      alone.push(ci);
      built.push(first);
      reused.push(second);
    }
    const [ci, first, second] = [alone, built, reused].map((times) => quantile(times, 0.5));
    const ratio = (time = NaN) => time / (ci ?? NaN);
    console.log(
      `from a lock file, 60 packages, warm cache: npm ci alone ${ci?.toFixed(0)} ms; ` +
        `build that installs ${first?.toFixed(0)} ms, × ${ratio(first).toFixed(2)} (aim ≤ 1.30 ${ratio(first) <= 1.3 ? "✔" : "✘"}); ` +
        `layer reused ${second?.toFixed(0)} ms, × ${ratio(second).toFixed(2)}`,
    );
  } finally {
    packages.close();
  }
}

/** Without instances, so that what is measured is building. */
async function measureMany(): Promise<void> {
  const platform = new Platform();
  await platform.start();
  try {
    const client = new KubeClient(httpsTransport(loadKubeconfig(platform.kubeconfig)));
    const begin = performance.now();
    const names = Array.from({ length: together }, (_, index) => `many-${index}`);
    for (const name of names) {
      const text = functionManifest(name, `exports.main = () => "${name}";`, { replicas: 0 });
      await client.apply(functions, JSON.parse(text) as Function);
    }
    for (;;) {
      const { items } = await client.list(functions, { namespace: "default" });
      const isBuilt = (fn: Function) =>
        getCondition(fn.status?.conditions, "BuildReady")?.status === "True";
      const left = items.filter((fn) => fn.metadata.name?.startsWith("many-") && !isBuilt(fn));
      if (left.length === 0) break;
      await pause(100);
    }
    const minutes = (performance.now() - begin) / 60_000;
    console.log(
      `${together} Functions applied at once, five slots: all built after ${(minutes * 60).toFixed(1)} s, ` +
        `${(together / minutes).toFixed(0)} builds per minute`,
    );
  } finally {
    await platform.remove();
  }
}

/** One run of the builder's process; returns milliseconds from its start to its end. */
async function build(
  bench: Bench,
  name: string,
  source: Record<string, string>,
  options: { host?: string; packages?: PackageRegistry; cache?: string; layers?: string } = {},
): Promise<number> {
  const { host = bench.host, packages, cache, layers = "layers" } = options;
  const directory = path.join(bench.dir, `source-${bench.next()}`);
  write(path.join(directory, "src"), source);
  mkdirSync(path.join(directory, "scratch"));
  if (packages) write(path.join(directory, "config"), { ".npmrc": `registry=${packages.url}/\n` });
  const flags = {
    source: path.join(directory, "src"),
    runtime: "nodejs24",
    base: `${host}/spry/nodejs24:1`,
    destination: `${host}/default-${name}:1`,
    "dependency-cache": `${host}/${layers}`,
    "registry-config": path.join(directory, "config"),
    scratch: path.join(directory, "scratch"),
  };
  const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
  const env = {
    SPRY_TERMINATION_LOG: path.join(directory, "end"),
    ...(cache === undefined ? {} : { npm_config_cache: cache }),
  };
  const begin = performance.now();
  await finish(process.execPath, [bench.program, ...args], env, directory);
  const time = performance.now() - begin;
  rmSync(directory, { recursive: true, force: true });
  return time;
}

async function finish(
  file: string,
  args: string[],
  env: Record<string, string>,
  cwd: string,
): Promise<void> {
  const { PATH } = process.env;
  const child = spawn(file, args, { cwd, env: { PATH, HOME: cwd, ...env }, stdio: "pipe" });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(`${path.basename(file)} ended with ${code}: ${output}`);
}

function write(directory: string, files: Record<string, string>): void {
  mkdirSync(directory, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(directory, name), text);
}

/** Another way to a port, which counts what is sent there. */
async function startCounter(
  port: number,
): Promise<{ host: string; sent: () => number; close: () => void }> {
  let sent = 0;
  const server = createServer((from) => {
    const to = connect(port, "127.0.0.1");
    from.on("data", (chunk) => (sent += chunk.length));
    from.pipe(to).pipe(from);
    for (const socket of [from, to]) socket.on("error", () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port: own } = server.address() as AddressInfo;
  return { host: `127.0.0.1:${own}`, sent: () => sent, close: () => void server.close() };
}

const kb = (bytes: number) => `${(bytes / 1e3).toFixed(1)} kB`;
const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
