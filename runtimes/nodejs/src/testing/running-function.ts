import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Readable, type Writable } from "node:stream";
import { freePort } from "@spry/test-kit";
import { onTestFinished } from "vitest";
import { bundleRuntime, compileRuntime, layOut } from "../index.ts";

/** The runtime as images have it, with bytecode for the Node.js that runs this. */
export const runtimeFiles = await compileRuntime(await bundleRuntime(), process.execPath);

/** The real runtime, in a process of its own, with a Function's files next to it. */
export interface RunningFunction {
  url: string;
  process: ChildProcess;
  /** Its exit code, once everything that it has said is here. */
  exited: Promise<number | null>;
  /** Of the Function's files. */
  directory: string;
  stderr: () => string;
  stdout: () => string;
}

type Files = Record<string, string>;

/** Starts the runtime, by a command with this prefix, and waits until it is ready. */
export async function startFunction(
  files: Files | string,
  env: Record<string, string> = {},
  prefix: string[] = [],
): Promise<RunningFunction> {
  const started = await spawnFunction(files, env, prefix);
  const ready = started.process.stdio[3] as Readable;
  const line = await Promise.race([
    once(ready, "data").then(String),
    once(started.process, "exit").then(() => "exited"),
  ]);
  if (line !== "ready\n") throw new Error(`the runtime did not start: ${started.stderr()}`);
  const port = Number(env["FUNC_PORT"] ?? started.port);
  return { ...started, url: `http://127.0.0.1:${port}` };
}

/** Runs a Function that does not start: its exit code and what it says. */
export async function failToStart(files: Files | string, env: Record<string, string> = {}) {
  const started = await spawnFunction(files, env);
  return { code: await started.exited, stderr: started.stderr() };
}

/** Runs a Function that may take any time until it has started. */
export const waitToStart = (files: Files | string) => spawnFunction(files, {});

/** As the first process of a container; the signal goes to it while its code says that it loads. */
export async function signalFirstProcess(files: Files | string, signal: NodeJS.Signals) {
  const started = await spawnFunction(files, {}, [asFirstProcess, ...ofNamespace]);
  const outer = started.process.pid;
  await once(started.process.stdout as Readable, "data");
  const inner = readFileSync(`/proc/${outer}/task/${outer}/children`, "utf8");
  process.kill(Number(inner), signal);
  return { code: await started.exited, stderr: started.stderr() };
}

const asFirstProcess = "unshare";
const ofNamespace = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child"];

/** Why no process can be the first one of a container here; undefined when one can. */
export const noFirstProcess =
  spawnSync(asFirstProcess, [...ofNamespace, "true"]).status === 0
    ? undefined
    : "unshare (util-linux) may not make a namespace of processes";

async function spawnFunction(
  files: Files | string,
  env: Record<string, string>,
  prefix: string[] = [],
) {
  const dir = newDirectory();
  writeFunction(dir, files);
  const port = await freePort();
  const [command, ...args] = [...prefix, process.execPath, join(dir, "server.cjs")];
  const child = spawn(command, args, {
    cwd: join(dir, "function"),
    env: {
      SERVER_HOST: "127.0.0.1",
      FUNC_PORT: String(port),
      FUNC_NAME: "hello",
      FUNC_RUNTIME: "nodejs24",
      SERVICE_NAMESPACE: "default",
      FUNC_SHUTDOWN_DELAY_MS: "50",
      SPRY_READY_FD: "3",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let out = "";
  let err = "";
  child.stdout?.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const exited = new Promise<number | null>((resolve) => void child.once("close", resolve));
  const directory = join(dir, "function");
  return { process: child, exited, port, directory, stdout: () => out, stderr: () => err };
}

/** A process that waits for its Function; `hand` gives it one, and waits until it is ready. */
export function startWarmProcess(env: Record<string, string> = {}) {
  const dir = newDirectory();
  const child = spawn(process.execPath, [join(dir, "server.cjs")], {
    cwd: dir,
    env: { SPRY_WARM_FD: "4", ...env },
    stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let err = "";
  child.stderr?.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const [, , , ready, handing] = child.stdio as [null, null, null, Readable, Writable];
  const say = (line: string) => void handing.end(line);
  const hand = async (files: Files | string, env: Record<string, string>): Promise<string> => {
    const port = await freePort();
    writeFunction(dir, files);
    const all = { FUNC_PORT: String(port), SERVER_HOST: "127.0.0.1", SPRY_READY_FD: "3", ...env };
    say(`${JSON.stringify({ directory: join(dir, "function"), env: all })}\n`);
    await once(ready, "data");
    return `http://127.0.0.1:${port}`;
  };
  return { process: child, directory: dir, hand, write: say, stderr: () => err };
}

function newDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), "spry-runtime-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  layOut(dir, runtimeFiles, {});
  mkdirSync(join(dir, "function"));
  return dir;
}

function writeFunction(dir: string, files: Files | string): void {
  const all = typeof files === "string" ? { "handler.js": files } : files;
  for (const [name, content] of Object.entries(all)) write(join(dir, "function"), name, content);
}

function write(dir: string, path: string, content: string | Buffer): void {
  mkdirSync(dirname(join(dir, path)), { recursive: true });
  writeFileSync(join(dir, path), content);
}

/** One request as it goes over the wire; `fetch` would not send every method and header. */
export async function send(
  url: string,
  options: { method?: string; headers?: Record<string, string>; body?: string | Uint8Array } = {},
): Promise<{ status: number; headers: Record<string, unknown>; body: string; bytes: Buffer }> {
  const outgoing = request(url, {
    agent: false,
    method: options.method ?? "GET",
    headers: options.headers ?? {},
  });
  outgoing.end(options.body);
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  // It has its answer: the rest of a body that was refused may find the connection closed.
  outgoing.on("error", () => undefined);
  const chunks: Buffer[] = [];
  for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: bytes.toString(), bytes };
}
