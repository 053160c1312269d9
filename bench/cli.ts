/** What a person waits for at the command line: help, `spry dev`, a save, `spry deploy` of few and of many files. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pause, Platform, root, run as runProgram } from "../test/support/platform.ts";
import { startSpryDev } from "../test/support/spry-dev.ts";
import { measureUnit, quantile, timeLine } from "./figures.ts";

const rounds = 7;
const saves = 25;
const manyFiles = 10_000;
/** A person looks at the answer before the next change; meanwhile the builder and the runtime for that change get ready. */
const lookMs = 1_500;
/** Between two requests that arrive during a deployment, and how long they go on after the end of the command. */
const askMs = 25;
const afterMs = 50;
/** Of ν, next to each line: the speed of a machine changes within minutes. */
const unitRounds = 9;
const program = path.join(root, "packages/cli/bin/spry.mjs");

export async function run(): Promise<void> {
  console.log(`ν: median of node -e 0, Node.js ${process.versions.node}, next to each line\n`);
  const home = mkdtempSync(path.join(tmpdir(), "bench-cli-"));
  const platform = new Platform();
  try {
    await measure("spry --help", 3, { rounds }, () => spry("--help"));
    await benchDev(home);
    await platform.start();
    await benchDeploy(home, platform);
  } finally {
    await platform.remove();
    rmSync(home, { recursive: true, force: true });
  }
}

async function benchDev(home: string): Promise<void> {
  const dir = path.join(home, "dev");
  write(dir, "first");
  const env = { KUBECONFIG: "/nonexistent", XDG_CACHE_HOME: path.join(home, "cache") };
  // The first start unpacks the runtime.
  await (await startSpryDev([dir], env)).end();
  const start = async () => void (await startSpryDev([dir], env)).end();
  await measure("spry dev: start to ready", 10, { rounds }, start);
  const { url, end } = await startSpryDev([dir], env);
  let count = 0;
  // The next process is warm when the user has looked at the answer.
  const label = "spry dev: save to the new answer (aim: 200 ms)";
  await measure(label, undefined, { rounds: saves, pauseMs: 500 }, async () => {
    const text = `save-${++count}`;
    write(dir, text);
    while ((await (await fetch(url)).text()) !== text);
  });
  await end();
}

async function benchDeploy(home: string, platform: Platform): Promise<void> {
  const dir = path.join(home, "shop");
  const deploy = async (directory: string) => {
    const { code, stderr } = await platform.spry(["deploy", directory]);
    if (code !== 0) throw new Error(stderr);
  };
  write(dir, "first");
  await deploy(dir);
  await measure("spry deploy: unchanged", 15, { rounds }, () => deploy(dir));
  let round = 0;
  const changeOf = (directory: string) => {
    const text = `change-${++round}`;
    write(directory, text);
    return text;
  };
  const change = (directory: string, host: string) => async () => {
    const text = changeOf(directory);
    await deploy(directory);
    await platform.callUntil(host, ({ body }) => body === text);
  };
  const changeShop = change(dir, "shop.default");
  const looked = { rounds, pauseMs: lookMs };
  await measure("spry deploy: changed file to 200", 15, looked, changeShop);
  await measure("the same, one right after the other", 25, { rounds }, changeShop);
  const asked: Change[] = [];
  const unit = await repeat(looked, async () => {
    const text = changeOf(dir);
    asked.push(await whileAsked(platform, "shop.default", text, () => deploy(dir)));
  });
  printChanges("the same while requests arrive", asked, unit);
  const many = path.join(home, "many");
  write(many, "first");
  for (let index = 0; index < manyFiles - 2; index++) {
    const place = path.join(many, "data", String(index % 100));
    mkdirSync(place, { recursive: true });
    writeFileSync(path.join(place, `${index}.txt`), `${index}\n`);
  }
  await deploy(many);
  const label = `spry deploy: one of ${manyFiles} files to 200`;
  await measure(label, 40, looked, change(many, "many.default"));
}

/** Milliseconds from the start of the command. */
interface Change {
  /** To the first response of the new code. */
  answered: number;
  /** To the end of the command. */
  ended: number;
  /** Responses of the old code after that, which must not be. */
  late: number;
}

/** Sends requests while the command runs, as a browser does that is reloaded again and again. */
async function whileAsked(
  platform: Platform,
  host: string,
  text: string,
  command: () => Promise<void>,
): Promise<Change> {
  const begin = performance.now();
  const since = () => performance.now() - begin;
  const progress: { answered?: number; ended?: number } = {};
  let late = 0;
  const running = command().finally(() => (progress.ended = since()));
  while (since() < (progress.ended ?? Infinity) + afterMs) {
    const isLate = progress.ended !== undefined;
    const { status, body } = await platform.call(host);
    if (status === 200 && body === text) progress.answered ??= since();
    else if (isLate) late++;
    await pause(askMs);
  }
  await running;
  const { answered, ended = since() } = progress;
  if (answered === undefined) throw new Error(`${host} did not answer with ${text}`);
  return { answered, ended, late };
}

function printChanges(label: string, found: readonly Change[], unit: number): void {
  const answered = found.map((each) => each.answered);
  console.log(timeLine(`${label}: to the first 200`, answered, unit));
  const ended = found.map((each) => each.ended);
  console.log(timeLine(`${label}: to its end`, ended, unit));
  const late = found.reduce((sum, each) => sum + each.late, 0);
  if (late > 0) console.log(`✘ ${late} responses of the old code after the end of the command`);
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

interface Repetition {
  rounds: number;
  pauseMs?: number;
}

/** Prints how long the work takes. `aim`: of the median, in ν. */
async function measure(
  label: string,
  aim: number | undefined,
  repetition: Repetition,
  work: () => Promise<void>,
): Promise<void> {
  const times: number[] = [];
  const unit = await repeat(repetition, async () => {
    const begin = performance.now();
    await work();
    times.push(performance.now() - begin);
  });
  console.log(`${timeLine(label, times, unit, aim)}   ν=${unit.toFixed(1)} ms`);
}

/** Works several times, and returns ν of the meantime: measured in the pauses, or else before and after. */
async function repeat(
  { rounds, pauseMs = 0 }: Repetition,
  work: () => Promise<void>,
): Promise<number> {
  const units = [measureUnit(unitRounds)];
  for (let round = 0; round < rounds; round++) {
    if (pauseMs > 0) {
      await pause(pauseMs);
      units.push(measureUnit(unitRounds));
    }
    await work();
  }
  units.push(measureUnit(unitRounds));
  return quantile(units, 0.5);
}
