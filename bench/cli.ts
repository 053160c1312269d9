/** What a person waits for at the command line: help, `spry dev`, a save, `spry deploy` of few and of many files. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pause, Platform, root, run as runProgram } from "../test/support/platform.ts";
import { startSpryDev } from "../test/support/spry-dev.ts";
import { measureUnit, timeLine } from "./figures.ts";

const rounds = 7;
const saves = 25;
const manyFiles = 10_000;
/** A person looks at the answer before the next change; meanwhile the builder and the runtime for that change get ready. */
const lookMs = 1_500;
const program = path.join(root, "packages/cli/bin/spry.mjs");

export async function run(): Promise<void> {
  const unit = measureUnit();
  console.log(
    `ν = ${unit.toFixed(1)} ms (median of node -e 0, Node.js ${process.versions.node})\n`,
  );
  const home = mkdtempSync(path.join(tmpdir(), "bench-cli-"));
  const platform = new Platform();
  try {
    const help = await times(rounds, () => spry("--help"));
    console.log(timeLine("spry --help", help, unit, 3));
    await benchDev(home, unit);
    await platform.start();
    await benchDeploy(home, unit, platform);
  } finally {
    await platform.remove();
    rmSync(home, { recursive: true, force: true });
  }
}

async function benchDev(home: string, unit: number): Promise<void> {
  const dir = path.join(home, "dev");
  write(dir, "first");
  const env = { KUBECONFIG: "/nonexistent", XDG_CACHE_HOME: path.join(home, "cache") };
  // The first start unpacks the runtime.
  await (await startSpryDev([dir], env)).end();
  const ready = await times(rounds, async () => void (await startSpryDev([dir], env)).end());
  console.log(timeLine("spry dev: start to ready", ready, unit, 10));
  const { url, end } = await startSpryDev([dir], env);
  const answered: number[] = [];
  for (let round = 0; round < saves; round++) {
    // The next process is warm when the user has looked at the answer.
    await new Promise((resolve) => setTimeout(resolve, 500));
    const begin = performance.now();
    write(dir, `save-${round}`);
    while ((await (await fetch(url)).text()) !== `save-${round}`);
    answered.push(performance.now() - begin);
  }
  await end();
  console.log(
    timeLine(
      "spry dev: save to the new answer (aim: 200 ms)",
      answered,
      unit,
      Math.round(2000 / unit) / 10,
    ),
  );
}

async function benchDeploy(home: string, unit: number, platform: Platform): Promise<void> {
  const dir = path.join(home, "shop");
  const deploy = async (directory: string) => {
    const { code, stderr } = await platform.spry(["deploy", directory]);
    if (code !== 0) throw new Error(stderr);
  };
  write(dir, "first");
  await deploy(dir);
  const same = await times(rounds, () => deploy(dir));
  console.log(timeLine("spry deploy: unchanged", same, unit, 15));
  let round = 0;
  const change = async () => {
    write(dir, `change-${++round}`);
    await deploy(dir);
    await platform.callUntil("shop.default", ({ body }) => body === `change-${round}`);
  };
  const changed = await times(rounds, change, lookMs);
  console.log(timeLine("spry deploy: changed file to 200", changed, unit, 15));
  const atOnce = await times(rounds, change);
  console.log(timeLine("the same, one right after the other", atOnce, unit, 25));
  const many = path.join(home, "many");
  write(many, "first");
  for (let index = 0; index < manyFiles - 2; index++) {
    const place = path.join(many, "data", String(index % 100));
    mkdirSync(place, { recursive: true });
    writeFileSync(path.join(place, `${index}.txt`), `${index}\n`);
  }
  await deploy(many);
  const changeMany = async () => {
    write(many, `many-${++round}`);
    await deploy(many);
    await platform.callUntil("many.default", ({ body }) => body === `many-${round}`);
  };
  const changedMany = await times(3, changeMany, lookMs);
  console.log(timeLine(`spry deploy: one of ${manyFiles} files to 200`, changedMany, unit, 40));
}

async function spry(...args: string[]): Promise<void> {
  const { code } = await runProgram(process.execPath, [program, ...args]);
  if (code !== 0) throw new Error(`spry ${args.join(" ")} ended with ${code}`);
}

function write(dir: string, text: string): void {
  mkdirSync(dir, { recursive: true });
  writeFileSync(path.join(dir, "package.json"), `{ "type": "module" }\n`);
  const code = `export default { fetch: () => new Response(${JSON.stringify(text)}) };\n`;
  writeFileSync(path.join(dir, "handler.js"), code);
}

async function times(count: number, work: () => Promise<void>, pauseMs = 0): Promise<number[]> {
  const measured: number[] = [];
  for (let round = 0; round < count; round++) {
    await pause(pauseMs);
    const begin = performance.now();
    await work();
    measured.push(performance.now() - begin);
  }
  return measured;
}
