import { execFile, type ExecFileException } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { type ScriptOptions } from "node:vm";
import type * as Start from "../start.ts";
import { layOut } from "./lay-out.ts";
import { type RuntimeFile } from "./runtime-files.ts";

const timeoutMs = 30_000;
/** Of either kind: `main(event, context)`, and `main(request, response)` since nodejs26. */
const handler = `exports.main = (_, response) => (response.end ? response.end("done") : "done");`;

/**
 * The same files, and the bytecode of what a start and the first requests run, for the Node.js at `node` alone: a fifth of the
 * processor time of a start goes into compiling that. Throws when this Node.js does not run here, or there is no room for
 * temporary files: the files that it was given start a Function all the same.
 */
export async function compileRuntime(
  files: readonly RuntimeFile[],
  node: string,
): Promise<RuntimeFile[]> {
  try {
    return [...files, ...(await compile(files, node))];
  } catch (cause) {
    throw new Error(`compiling the Node.js runtime with ${node}: ${reasonOf(cause)}`, {
      cause,
    });
  }
}

/** The message of who ran the program repeats all of its text. */
function reasonOf(cause: unknown): string {
  const { stderr = "", message, killed, code } = cause as ExecFileException;
  if (killed) return `it exceeded its time limit (${timeoutMs / 1000} s)`;
  const [line] = /^\w*Error\b.*$/m.exec(stderr) ?? [];
  return line ?? (typeof code === "number" ? `it failed with exit code ${code}` : message);
}

async function compile(files: readonly RuntimeFile[], node: string): Promise<RuntimeFile[]> {
  const dir = mkdtempSync(path.join(tmpdir(), "spry-compile-"));
  try {
    const start = layOut(dir, files, { "handler.js": handler });
    const env = { FUNC_PORT: "0", SERVER_HOST: "127.0.0.1", FUNC_SHUTDOWN_DELAY_MS: "0" };
    // The same bytecode each time: where V8 puts names in its tables depends on that number.
    const args = [
      "--random-seed=1",
      "-e",
      `(${keepCompiled.toString()})(${JSON.stringify(start)})`,
    ];
    const options = { cwd: dir, env, timeout: timeoutMs, killSignal: "SIGKILL" as const };
    await promisify(execFile)(node, args, options);
    const made = readdirSync(dir).filter((name) => name.endsWith(".bytecode"));
    if (made.length === 0) throw new Error("it produced no bytecode");
    return made.map((name) => ({ path: name, content: readFileSync(path.join(dir, name)) }));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Runs in a process of its own, from its text: it can use nothing of this file. */
function keepCompiled(start: string): void {
  const { writeFileSync } = process.getBuiltinModule("node:fs");
  const { connect } = process.getBuiltinModule("node:net");
  const { subscribe } = process.getBuiltinModule("node:diagnostics_channel");
  interface Listening {
    server: Server;
  }
  subscribe("tracing:net.server.listen:asyncEnd", (message) => {
    const { port } = (message as Listening).server.address() as AddressInfo;
    // Not by the client of node:http, which the runtime has carry a trace.
    const ask = (requests: string[]) => {
      const [request, ...rest] = requests;
      if (request === undefined) return process.kill(process.pid, "SIGTERM");
      const socket = connect(port, "127.0.0.1", () => socket.write(request));
      socket.resume().once("end", () => ask(rest));
    };
    const head = "HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    const get = `GET / ${head}\r\n`;
    const post = `POST / ${head}content-type: application/json\r\ncontent-length: 7\r\n\r\n{"a":1}`;
    ask([get, get, post]);
  });
  // Whether an interval passes before the end depends on how busy the machine is: what it would run is not compiled.
  globalThis.setInterval = (() => setTimeout(() => {}, 0)) as unknown as typeof setInterval;
  const vm = process.getBuiltinModule("node:vm");
  const { Script } = vm;
  vm.Script = class extends Script {
    constructor(text: string, options: ScriptOptions) {
      // The bytecode has that name, but who reads it goes by another: not that of a passing directory.
      super(text, { ...options, filename: "runtime.js" });
      process.on("exit", () => writeFileSync(bytecodeFile, this.createCachedData()));
    }
  };
  // Not by a name for which the bundler of this file has a replacement.
  const { createRequire } = process.getBuiltinModule("node:module");
  const { bytecodeFile } = createRequire(start)(start) as typeof Start;
}
