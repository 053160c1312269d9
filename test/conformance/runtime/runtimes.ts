import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fetchPython, findPython } from "@spry/machine";
import { bundleRuntime, compileRuntime, layOut, type RuntimeFile } from "@spry/runtime-nodejs";
import { endChild, freePort } from "@spry/test-kit";
import { nodeBinary } from "../../../tools/images/node-binary.ts";
import { type Language } from "./clauses.ts";

/** A runtime whose interpreter is on this machine, or can be brought here. */
export interface Runtime {
  name: string;
  language: Language;
  api: "event" | "request";
  interpreter: string;
}

/** Others are missing, and why. */
export const missingRuntimes: { name: string; reason: string }[] = [];

export async function availableRuntimes(): Promise<Runtime[]> {
  const found: Runtime[] = [];
  // Node.js 20 is deprecated, and goes through the same code as 22.
  const majors = process.env["SPRY_TEST_FULL"] ? [20, 22, 24, 26] : [22, 24, 26];
  found.push(...nodeRuntimesOf(majors));
  const isRecent = "import sys; sys.exit(sys.version_info < (3, 11))";
  if (spawnSync("python3", ["-c", isRecent]).status === 0)
    found.push({ name: "python312", language: "python", api: "event", interpreter: "python3" });
  const lack = (await findPython("3.14")) ? undefined : await fetchPython("3.14", () => {});
  const python = lack === undefined ? await findPython("3.14") : undefined;
  if (python)
    found.push({
      name: "python314",
      language: "python",
      api: "request",
      interpreter: python.executable,
    });
  else missingRuntimes.push({ name: "python314", reason: lack ?? "it does not run" });
  return found;
}

/** Of these versions of Node.js; those that are not to be had are `missingRuntimes`. */
export function nodeRuntimesOf(majors: readonly number[]): Runtime[] {
  return majors.flatMap((major) => {
    const name = `nodejs${major}`;
    const api = major >= 26 ? "request" : "event";
    try {
      return [{ name, language: "nodejs", api, interpreter: nodeBinary(String(major)) }];
    } catch (error) {
      missingRuntimes.push({ name, reason: (error as Error).message.slice(0, 200) });
      return [];
    }
  });
}

const pythonPackage = path.resolve(import.meta.dirname, "../../../runtimes/python/spry_runtime");
/** By interpreter: as images have it, with bytecode for that one. */
const nodeRuntimes = new Map<string, Promise<RuntimeFile[]>>();

export interface RunningRuntime {
  url: string;
  /** Sends SIGTERM; the exit code, or the signal that ended it, is there when it has ended. */
  terminate(): Promise<number | NodeJS.Signals | null>;
  /** At once, and leaves nothing. */
  stop(): Promise<void>;
}

/**
 * Starts it as an image does, with one file of code; `url` is there when it is ready. It says so itself, as on the
 * embedded engine, unless `SPRY_READY_FD` is empty.
 */
export async function startRuntime(
  { language, name, interpreter }: Runtime,
  code: string,
  env: Record<string, string>,
): Promise<RunningRuntime> {
  const dir = mkdtempSync(path.join(tmpdir(), "spry-conformance-"));
  mkdirSync(path.join(dir, "function"));
  const port = await freePort();
  const child = spawn(interpreter, [await prepare(dir, language, interpreter, code)], {
    cwd: path.join(dir, "function"),
    env: {
      PATH: process.env["PATH"] ?? "",
      SERVER_HOST: "127.0.0.1",
      FUNC_PORT: String(port),
      FUNC_NAME: "hello",
      SERVICE_NAMESPACE: "default",
      FUNC_RUNTIME: name,
      SPRY_READY_FD: "3",
      ...env,
    },
    stdio: ["ignore", "ignore", "pipe", "pipe"],
  });
  const stop = async () => {
    await endChild(child);
    rmSync(dir, { recursive: true, force: true });
  };
  const terminate = async () => {
    const code = await endChild(child, "SIGTERM");
    return code ?? child.signalCode;
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    await (env["SPRY_READY_FD"] === "" ? healthy(url) : ready(child));
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, terminate, stop };
}

async function prepare(
  dir: string,
  language: Language,
  interpreter: string,
  code: string,
): Promise<string> {
  if (language === "python") {
    writeFileSync(path.join(dir, "function", "handler.py"), code);
    symlinkSync(pythonPackage, path.join(dir, "spry_runtime"));
    return path.join(dir, "spry_runtime", "__main__.py");
  }
  const made = nodeRuntimes.get(interpreter) ?? makeNodeRuntime(interpreter);
  nodeRuntimes.set(interpreter, made);
  return layOut(dir, await made, { "handler.js": code });
}

async function makeNodeRuntime(interpreter: string): Promise<RuntimeFile[]> {
  return await compileRuntime(await bundleRuntime(), interpreter);
}

async function ready(child: ChildProcess): Promise<void> {
  let log = "";
  child.stderr?.on("data", (chunk: Buffer) => (log += chunk.toString()));
  const pipe = child.stdio[3];
  const said = pipe ? once(pipe, "data").then(String) : Promise.resolve("");
  const line = await Promise.race([said, once(child, "exit").then(() => "exited")]);
  if (line !== "ready\n") throw new Error(`the runtime did not start: ${log}`);
}

async function healthy(url: string): Promise<void> {
  for (const end = Date.now() + 30_000; ; await pause(20)) {
    const answer = await fetch(`${url}/healthz`).catch((error: Error) => error);
    if (answer instanceof Response && answer.ok) return;
    if (Date.now() > end) throw new Error(`the runtime is not healthy after 30 s`);
  }
}
