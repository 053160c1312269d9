/**
 * What a build costs: the builder's process from start to pushed, an edit of the code next to 50 MB of
 * dependencies, a second Function on the same base, an installation from a lock file next to `npm ci`
 * alone, and two hundred Functions applied at once.
 */
import path from "node:path";
import { functions, type Function } from "@spry/function";
import { getCondition, httpsTransport, KubeClient, loadKubeconfig } from "@spry/kube";
import { functionManifest, pause, Platform } from "../test/support/platform.ts";
import { baseBytes, Builder, finish, writeFiles } from "./builder-process.ts";
import { measureUnit, quantile, timeLine } from "./figures.ts";
import { startPackageRegistry } from "./package-registry.ts";

const rounds = 15;
const installRounds = 5;
const together = 200;

export async function run(): Promise<void> {
  const bench = await Builder.start();
  try {
    const unit = measureUnit();
    console.log(
      `ν = ${unit.toFixed(1)} ms (median of node -e 0, Node.js ${process.versions.node})\n`,
    );
    await measurePlain(bench);
    await measureEdit(bench);
    await measureInstall(bench);
    await measureMany();
  } finally {
    await bench.close();
  }
}

async function measurePlain(bench: Builder): Promise<void> {
  const times: number[] = [];
  const units: number[] = [];
  const source = (text: string) => ({
    "handler.js": `exports.main = () => ${JSON.stringify(text)}`,
  });
  await bench.build("warm-up", source("warm-up"));
  for (let round = 0; round < rounds; round++) {
    units.push(measureUnit(3));
    times.push(await bench.build(`plain-${round}`, source(`number ${round}`)));
  }
  const unit = quantile(units, 0.5);
  console.log(timeLine("builder, no dependencies: start to pushed", times, unit, 8));
  const before = bench.sent();
  await bench.build("second", source("second"), { host: bench.countingHost });
  const sent = bench.sent() - before;
  const verdict = sent < 100_000 ? "✔" : "✘";
  console.log(
    `second Function on a base of ${mb(baseBytes)}: ${kb(sent)} sent in all, requests included (aim: base 0 ${verdict})`,
  );
}

async function measureEdit(bench: Builder): Promise<void> {
  const packages = await startPackageRegistry(50, 10, 100 * 1024);
  try {
    const source = (text: string) => ({ "handler.js": text, ...packages.files });
    await bench.build("heavy", source("// first"), { packages });
    const times: number[] = [];
    const units: number[] = [];
    for (let round = 0; round < rounds; round++) {
      units.push(measureUnit(3));
      times.push(await bench.build("heavy", source(`// edit ${round}`), { packages }));
    }
    console.log(
      timeLine("code edit next to 50 MB of dependencies", times, quantile(units, 0.5), 8),
    );
    const before = bench.sent();
    const last = { packages, host: bench.countingHost };
    await bench.build("heavy", source("// the last edit"), last);
    const sent = bench.sent() - before;
    console.log(
      `bytes sent for such an edit, requests included: ${kb(sent)} (aim < 100 kB ${sent < 100_000 ? "✔" : "✘"})`,
    );
  } finally {
    packages.close();
  }
}

/** Both with a lock file and npm's cache full; the builder packs, hashes and sends besides. */
async function measureInstall(bench: Builder): Promise<void> {
  const packages = await startPackageRegistry(60, 20, 4 * 1024);
  const cache = path.join(bench.dir, "npm-cache");
  const alone: number[] = [];
  const built: number[] = [];
  const reused: number[] = [];
  try {
    for (let round = -1; round < installRounds; round++) {
      const directory = path.join(bench.dir, `ci-${round}`);
      writeFiles(directory, packages.files);
      const begin = performance.now();
      const flags = ["ci", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error"];
      await finish("npm", flags, { npm_config_cache: cache }, directory);
      const ci = performance.now() - begin;
      const source = { "handler.js": "// x", ...packages.files };
      const name = `install-${round}`;
      const own = { packages, cache, layers: `layers-${round}` };
      const first = await bench.build(name, source, own);
      const second = await bench.build(`${name}-again`, source, own);
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

const kb = (bytes: number) => `${(bytes / 1e3).toFixed(1)} kB`;
const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
