/**
 * Half an hour of everything that a Function meets, good and bad, and whether its process grows:
 * `npm run bench -- soak --minutes 30 --runtime python`, with `--pause 20` milliseconds after each act where others
 * use the machine. Prints a line a minute. What a collection leaves must not grow, and what is resident must be level
 * in the second half.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { pause } from "../test/support/platform.ts";
import { quantile } from "./figures.ts";
import { firstAnswer } from "./runtime-server.ts";
import { acts, agent } from "./soak-acts.ts";
import { type SoakServer, type SoakSample, soakTargets } from "./soak-targets.ts";
import { startCollector } from "./span-collector.ts";

const workers = 16;
const sampleMs = 5000;
/** Of the last third over the first; of what is resident, of the last quarter's median over the third's. */
const allowedGrowth = 1.05;
/** What a collection leaves holds bodies that are under way, megabytes of them: only what is left at the best of times has stayed. */
const floor = 0.1;

export async function run(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: {
      minutes: { type: "string", default: "30" },
      pause: { type: "string", default: "0" },
      runtime: { type: "string", default: "nodejs" },
    },
  });
  const start = soakTargets[values.runtime];
  if (!start)
    throw new Error(`--runtime ${values.runtime}: want ${Object.keys(soakTargets).join(", ")}`);
  const dir = mkdtempSync(path.join(tmpdir(), "spry-soak-"));
  const collector = await startCollector();
  const server = await start(dir, { TRACE_COLLECTOR_ENDPOINT: collector.endpoint });
  try {
    await firstAnswer(server.port);
    await soak(server, Number(values.minutes) * 60_000, Number(values.pause));
  } finally {
    agent.destroy();
    collector.close();
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function soak(server: SoakServer, ms: number, pauseMs: number): Promise<void> {
  const end = performance.now() + ms;
  let done = 0;
  const work = async (worker: number) => {
    for (let turn = worker; performance.now() < end; turn++) {
      await acts[turn % acts.length]?.(server.port);
      if (pauseMs > 0) await pause(pauseMs);
      done++;
    }
  };
  const samples: SoakSample[] = [];
  const watch = async () => {
    while (performance.now() < end) {
      await pause(sampleMs);
      samples.push(await server.sample());
      if ((samples.length * sampleMs) % 60_000 === 0)
        console.log(
          `${(samples.length * sampleMs) / 60_000} min, ${done} acts: ${JSON.stringify(samples.at(-1))}`,
        );
    }
  };
  await Promise.all([watch(), ...Array.from({ length: workers }, (_, worker) => work(worker))]);
  console.log(`${done} acts in ${(ms / 60_000).toFixed(0)} minutes, ${acts.length} kinds`);
  for (const name of Object.keys(samples[0] ?? {}))
    judge(
      name,
      samples.map((each) => each[name] ?? NaN),
    );
}

function judge(name: string, values: number[]): void {
  const at = (q: number, from: number, to: number) =>
    quantile(values.slice(Math.floor(from * values.length), Math.ceil(to * values.length)), q);
  const isResident = name.startsWith("resident");
  const q = isResident ? 0.5 : floor;
  const growth = isResident
    ? at(q, 3 / 4, 1) / at(q, 1 / 2, 3 / 4)
    : at(q, 2 / 3, 1) / at(q, 0, 1 / 3);
  const quarters = [0, 1, 2, 3].map((n) => at(q, n / 4, (n + 1) / 4).toFixed(1)).join(", ");
  const verdict = growth <= allowedGrowth ? "✔" : "✘";
  console.log(
    `${name.padEnd(28)} by quarters ${quarters}   growth × ${growth.toFixed(3)}   aim ≤ ${allowedGrowth} ${verdict}`,
  );
  if (!(growth <= allowedGrowth)) process.exitCode = 1;
}
