/** Starts the Python runtime as an image does, and speaks HTTP with it, well-formed or not. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { freePort } from "@spry/test-kit";

export const entry = path.resolve(import.meta.dirname, "../spry_runtime/__main__.py");

/** Why the tests cannot run here, or nothing. */
export const missingPython = findMissing();

function findMissing(): string | undefined {
  const found = spawnSync("python3", [
    "-c",
    "import sys; print(sys.executable); sys.exit(sys.version_info < (3, 11))",
  ]);
  return found.status === 0 ? undefined : "python3 3.11 or newer is not on PATH";
}

/**
 * A directory with these packages, installed once by pip and kept for later runs; undefined where that cannot be done, as without
 * a package registry.
 */
export function installPackages(...packages: string[]): string | undefined {
  const { status, stdout } = spawnSync("python3", ["-c", "import sys; print(sys.version)"], {
    encoding: "utf8",
  });
  if (status !== 0) return undefined;
  const key = createHash("sha256")
    .update(`${stdout} ${packages.join(" ")}`)
    .digest("hex");
  const target = path.resolve(
    import.meta.dirname,
    "../../../node_modules/.cache/python",
    key.slice(0, 12),
  );
  if (existsSync(target)) return target;
  const half = `${target}-${process.pid}`;
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", half];
  const installed = spawnSync("python3", [...pip, ...packages], { timeout: 120_000 });
  if (installed.status !== 0) return undefined;
  try {
    renameSync(half, target);
  } catch {
    rmSync(half, { recursive: true, force: true }); // another test was quicker
  }
  return target;
}

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

export interface Call {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

export class PythonRuntime {
  readonly #process: ChildProcess;
  readonly #directory: string;
  readonly port: number;
  /** Everything it has written to stdout and stderr. */
  output = "";
  readonly ready: Promise<void>;
  readonly exited: Promise<number | null>;

  private constructor(process_: ChildProcess, directory: string, port: number) {
    this.#process = process_;
    this.#directory = directory;
    this.port = port;
    process_.stdout?.on("data", (data: Buffer) => (this.output += data.toString()));
    process_.stderr?.on("data", (data: Buffer) => (this.output += data.toString()));
    this.exited = new Promise((resolve) => process_.once("close", (code) => resolve(code)));
    this.ready = new Promise((resolve, reject) => {
      process_.stdio[3]?.once("data", (data: Buffer) => {
        if (data.toString() === "ready\n") resolve();
        else reject(new Error(`unexpected readiness ${JSON.stringify(data.toString())}`));
      });
      void this.exited.then(() => reject(new Error(`exited before it was ready: ${this.output}`)));
    });
    this.ready.catch(() => undefined);
  }

  /** Starts it with this `handler.py` (or several files), by a command with this prefix; resolves at once. */
  static async launch(
    source: string | Record<string, string>,
    env: Record<string, string> = {},
    prefix: readonly string[] = [],
  ): Promise<PythonRuntime> {
    const directory = mkdtempSync(path.join(tmpdir(), "spry-python-"));
    const files = typeof source === "string" ? { "handler.py": source } : source;
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
      writeFileSync(path.join(directory, name), text);
    }
    const port = await freePort();
    const [command, ...more] = [...prefix, "python3", entry];
    const child = spawn(command, more, {
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: directory,
        FUNC_NAME: "hello",
        FUNC_RUNTIME: "python312",
        SERVICE_NAMESPACE: "space",
        FUNCTION_PATH: directory,
        FUNC_PORT: String(port),
        SERVER_HOST: "127.0.0.1",
        SPRY_READY_FD: "3",
        PYTHONDONTWRITEBYTECODE: "1",
        FUNC_SHUTDOWN_DELAY_MS: "1000",
        ...env,
      },
    });
    return new PythonRuntime(child, directory, port);
  }

  /** Starts it and waits until it says that it is ready. */
  static async start(
    source: string | Record<string, string>,
    env: Record<string, string> = {},
    prefix: readonly string[] = [],
  ): Promise<PythonRuntime> {
    const runtime = await PythonRuntime.launch(source, env, prefix);
    await runtime.ready;
    return runtime;
  }

  call(target = "/", { method = "GET", headers = {}, body }: Call = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = request(
        { host: "127.0.0.1", port: this.port, path: target, method, headers, agent: false },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("error", reject);
          response.on("end", () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: Buffer.concat(chunks).toString(),
            }),
          );
        },
      );
      sent.on("error", reject);
      sent.end(body);
    });
  }

  async json(target = "/", call: Call = {}): Promise<unknown> {
    const answer = await this.call(target, call);
    if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body}\n${this.output}`);
    return JSON.parse(answer.body);
  }

  /** Sends bytes as they are and returns all that comes back until the server closes. */
  raw(...pieces: string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = this.connect();
      let received = "";
      socket.on("data", (data) => (received += data.toString("latin1")));
      socket.on("close", () => resolve(received));
      socket.on("error", reject);
      for (const piece of pieces) socket.write(piece, "latin1");
    });
  }

  connect(): Socket {
    return connect(this.port, "127.0.0.1").setNoDelay(true);
  }

  /** Where a file of the Function is. */
  file(name: string): string {
    return path.join(this.#directory, name);
  }

  /** The names of the Function's files. */
  files(): string[] {
    return readdirSync(this.#directory);
  }

  /** Changes a file of the Function. */
  write(name: string, text: string): void {
    writeFileSync(path.join(this.#directory, name), text);
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.exited;
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
