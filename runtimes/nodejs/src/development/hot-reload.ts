/**
 * For local development (`FUNC_HOT_RELOAD`): this process keeps the port and watches the Function's
 * files; a child serves, with nothing of the code before it. When a file changes the next child loads the new code: if it can, it takes over
 * and the last one finishes what it has; if it cannot, the last one goes on and says so in its answers.
 */
import cluster, { type Worker } from "node:cluster";
import { watch } from "node:fs";
import { type MainProgram, mainProgramArguments } from "../application/main-program.ts";
import { takeSignals } from "../shutdown.ts";

/** What the processes say to each other. */
export type Message =
  | "ready"
  | "retire"
  | "retired"
  | "current"
  | { failed: string }
  | { main: MainProgram };

const settleMs = 60;

/** Serves until the process ends. `ready` is called when the first child serves. */
export async function superviseReloads(directory: string, ready: () => void): Promise<void> {
  // No connection is accepted here: the children have the port itself.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({ stdio: ["ignore", "inherit", "pipe", "ipc"] });
  takeSignals((signal) => {
    isStopping = true;
    current?.process.kill(signal);
  });
  const { child: first, failure } = await load(directory, (child) => (current = child));
  if (failure !== undefined) process.exit(1);
  keep(first);
  onChange(directory, () => reload(directory));
  ready();
}

let current: Worker | undefined;
let isStopping = false;

/** One at a time; changes meanwhile are left to the next reload. */
async function reload(directory: string): Promise<void> {
  const begin = Date.now();
  const { child: next, failure } = await load(directory);
  if (isStopping) return void next.process.kill("SIGKILL");
  if (failure !== undefined) {
    process.stderr.write("the new code cannot be loaded; the previous version keeps serving\n");
    return tell(current, { failed: failure });
  }
  const last = current;
  keep(next);
  tell(last, "retire");
  await said(last, "retired");
  tell(next, "current");
  process.stderr.write(`reloaded in ${Date.now() - begin} ms\n`);
}

/** A child with the code as it is now: one in which it is the main program, where it has to be. */
async function load(
  directory: string,
  onFork: (child: Worker) => void = () => {},
): Promise<{ child: Worker; failure: string | undefined }> {
  const child = fork(onFork);
  const result = await outcome(child);
  if (typeof result !== "object") return { child, failure: result };
  const { execArgv, args } = mainProgramArguments(result.main);
  const [exec, ...others] = args;
  cluster.setupPrimary({ exec: exec ?? "", args: others, execArgv });
  const program = fork(onFork, { SPRY_MAIN_PROGRAM: directory });
  cluster.setupPrimary(asRuntime);
  const failure = await outcome(program);
  return { child: program, failure: typeof failure === "object" ? failure.main.file : failure };
}

/** What is forked otherwise. */
const asRuntime = {
  exec: process.argv[1] ?? "",
  args: process.argv.slice(2),
  execArgv: process.execArgv,
};

function fork(onFork: (child: Worker) => void, env: NodeJS.ProcessEnv = {}): Worker {
  const child = cluster.fork(env);
  onFork(child);
  return child;
}

/** Undefined when it serves, else why not: the first line that it said, or that it is to be the main program. */
async function outcome(child: Worker): Promise<string | { main: MainProgram } | undefined> {
  let log = "";
  child.process.stderr?.on("data", (chunk: Buffer) => {
    if (log.length < 1000) log += chunk.toString();
    process.stderr.write(chunk);
  });
  const said = await new Promise<Message | undefined>((resolve) => {
    child.on("message", (message: Message) => resolve(message));
    child.process.once("close", () => resolve(undefined));
  });
  if (typeof said === "object" && "main" in said) return said;
  return said === "ready" ? undefined : (log.split("\n")[0] ?? "");
}

/** From now on its end is the Function's. */
function keep(child: Worker): void {
  current = child;
  child.once("exit", (code) => child === current && process.exit(code ?? 1));
}

function tell(child: Worker | undefined, message: Message): void {
  if (child?.isConnected()) child.send(message);
}

async function said(child: Worker | undefined, message: Message): Promise<void> {
  if (!child) return;
  await new Promise<void>((resolve) => {
    child.on("message", (each) => each === message && resolve());
    child.once("exit", () => resolve());
  });
}

/** Editors write a file in several steps: acts when they have been quiet for a moment. */
function onChange(directory: string, act: () => Promise<void>): void {
  let timer: NodeJS.Timeout | undefined;
  let running = Promise.resolve();
  watch(directory, { recursive: true }, (_event, name) => {
    if (name !== null && /(?:^|\/)(?:node_modules|\.git)(?:\/|$)/.test(name)) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      running = running.then(act);
    }, settleMs);
  });
}
