/** A Function with ten dependencies: spawn to first 200, with and without Node.js' compile cache. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pause } from "../test/support/platform.ts";
import { measureUnit, quantile, timeLine } from "./figures.ts";
import { installPackages } from "./install-packages.ts";
import { firstAnswer, layOut, makeRuntime, startServer } from "./runtime-server.ts";

const rounds = 21;
const packages = "express axios lodash ajv dayjs js-yaml pino uuid ws zod".split(" ");
const handler = `const all = ${JSON.stringify(packages)}.map((name) => require(name));
exports.main = () => String(all.length);`;

export async function run(): Promise<void> {
  const dir = mkdtempSync(path.join(tmpdir(), "spry-bench-"));
  try {
    const file = layOut(dir, await makeRuntime(), { "handler.js": handler });
    const failure = installPackages(path.join(dir, "function"), packages);
    if (failure) return console.log(`skipped: ${failure}`);
    const cache = { NODE_COMPILE_CACHE: path.join(dir, "cache") };
    // Fills the cache: the runtime writes it a second after it is ready.
    await start(file, cache, 2500);
    const [units, without, withCache]: number[][] = [[], [], []];
    for (let round = 0; round < rounds; round++) {
      units?.push(measureUnit(1));
      without?.push(await start(file, {}));
      withCache?.push(await start(file, cache));
    }
    const unit = quantile(units ?? [], 0.5);
    console.log(`ν = ${unit.toFixed(1)} ms; ${packages.join(", ")}`);
    console.log(timeLine("spawn to first 200", without ?? [], unit));
    console.log(timeLine("spawn to first 200, compile cache", withCache ?? [], unit));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function start(file: string, env: Record<string, string>, leaveMs = 0): Promise<number> {
  const begin = performance.now();
  const server = startServer(file, env);
  await firstAnswer(server.port);
  const time = performance.now() - begin;
  await pause(leaveMs);
  await server.stop();
  return time;
}
