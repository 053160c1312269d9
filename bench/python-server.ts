/** The Python runtime as an image has it, or any other Python program, in a process group of its own, for benchmarks. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";

const runtime = path.resolve(import.meta.dirname, "../runtimes/python/spry_runtime");
/** Of the runtime, below the directory that `layOutPython` gets. */
export const pythonEntry = "spry_runtime/__main__.py";

/** Makes `<dir>/function/handler.py` next to the runtime; returns the runtime's entry. */
export function layOutPython(dir: string, handler: string): string {
  mkdirSync(path.join(dir, "function"), { recursive: true });
  writeFileSync(path.join(dir, "function/handler.py"), handler);
  symlinkSync(runtime, path.join(dir, "spry_runtime"));
  return path.join(dir, pythonEntry);
}

/** The interpreter of a new virtual environment: what this machine's own imports at each start is not to be measured. */
export function makeEnvironment(dir: string): string {
  const machines = command("python3", ["-c", "import sys; print(sys.executable)"]).trim();
  command(machines, ["-m", "venv", dir]);
  return path.join(dir, "bin/python");
}

export function command(file: string, args: string[]): string {
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: "utf8", timeout: 180_000 });
  if (status !== 0) throw new Error(`${file} ${args.join(" ")}: ${stderr}`);
  return stdout;
}

let port = 21_000 + (process.pid % 2000);
export const nextPort = (): number => port++;

/** `prefix` is a command that runs it, such as `taskset -c 1`. */
export function startPython(
  python: string,
  file: string,
  env: Record<string, string>,
  prefix: string[] = [],
): { port: number; pid: number; stop(): Promise<void> } {
  const own = nextPort();
  // Without a prefix env changes nothing, and has the process in its place.
  const child = spawn("env", [...prefix, python, file], {
    env: {
      SERVER_HOST: "127.0.0.1",
      FUNC_PORT: String(own),
      FUNC_NAME: "hello",
      FUNC_RUNTIME: "python312",
      PATH: process.env["PATH"] ?? "",
      ...env,
    },
    stdio: "ignore",
    detached: true,
  });
  const ended = once(child, "exit");
  const pid = child.pid ?? 0;
  const stop = async () => {
    process.kill(-pid, "SIGKILL");
    await ended;
  };
  return { port: own, pid, stop };
}
