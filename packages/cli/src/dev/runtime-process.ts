/** One process of the runtime, which waits for the directory and then serves it. */
import { Agent } from "node:http";
import { createServer } from "node:net";
import { type Readable, type Writable } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { signalGroup, type StartedProgram, tryProgram } from "@spry/kube";
import { loadedDescriptor } from "./loaded-files.ts";
import { LoadReport } from "./load-report.ts";

export interface LaunchOptions {
  command: string;
  args: readonly string[];
  /** What must be in the environment when the process starts; the rest comes with the directory. */
  env: Record<string, string>;
  /** Gets the process's output as it comes. */
  onOutput: (chunk: Buffer, stream: "stdout" | "stderr") => void;
  /** Files that the code has loaded, and when it began to be loaded (`loaded-files.ts`). */
  onLoaded?: ((files: readonly string[], since: number) => void) | undefined;
  /** Files that the code is about to write. */
  onWritten?: ((files: readonly string[]) => void) | undefined;
}

/** How a process ended; `output` is what it wrote last, at most 64 KiB, `report` what `onOutput` did not get of it (`load-report.ts`). */
export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  output: string;
  report: Buffer;
}

const outputLimit = 64 * 1024;

/** A child in a process group of its own, so that nothing of it is left behind. */
export class RuntimeProcess {
  readonly ended: Promise<Ended>;
  readonly agent = new Agent({ keepAlive: true, maxFreeSockets: 64 });
  port = 0;
  /** Requests that it has not answered yet. */
  open = 0;
  /** Undefined when it could not be started. */
  readonly #child: StartedProgram | undefined;
  #output = "";
  readonly #report: LoadReport;
  #isEnded = false;
  /** When it got its directory. */
  #since = 0;
  #whenIdle: (() => void) | undefined;

  constructor({ command, args, env, onOutput, onLoaded, onWritten }: LaunchOptions) {
    const child = tryProgram(command, args, {
      env: { ...env, SPRY_WARM_FD: "4" },
      stdio: ["ignore", "pipe", "pipe", "pipe", "pipe", "pipe"],
      detached: true,
    });
    this.#report = new LoadReport(onOutput);
    if ("failure" in child) {
      this.#isEnded = true;
      this.ended = child.failure.then(({ message }) => {
        const output = `${message}\n`;
        return { code: 1, signal: null, output, report: Buffer.from(output) };
      });
      return;
    }
    this.#child = child;
    const collect = (stream: "stdout" | "stderr") => (chunk: Buffer) => {
      this.#output = (this.#output + chunk.toString()).slice(-outputLimit);
      this.#report.write(chunk, stream);
    };
    child.stdout?.on("data", collect("stdout"));
    child.stderr?.on("data", collect("stderr"));
    const streams: readonly unknown[] = child.stdio;
    this.#readLoaded(streams[loadedDescriptor] as Readable, { onLoaded, onWritten });
    // A process that has ended does not read.
    (child.stdio[4] as Writable).on("error", () => {});
    this.ended = new Promise((resolve) => {
      const end = (code: number | null, signal: NodeJS.Signals | null) => {
        if (this.#isEnded) return;
        this.#isEnded = true;
        this.agent.destroy();
        resolve({ code, signal, output: this.#output, report: this.#report.take() });
      };
      // Of a signal that could not be sent.
      child.on("error", () => {});
      child.once("close", end);
      // A program that it has started may hold the streams open.
      child.once("exit", (code, signal) => setTimeout(end, 100, code, signal));
    });
  }

  /** Undefined when it could not be started. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  #readLoaded(
    stream: Readable,
    { onLoaded, onWritten }: Pick<LaunchOptions, "onLoaded" | "onWritten">,
  ): void {
    let rest = "";
    stream.on("error", () => {});
    stream.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split("\n");
      rest = (lines.pop() ?? "").slice(-outputLimit);
      if (this.#since === 0) return;
      const isWritten = (line: string) => line.startsWith(">");
      onWritten?.(lines.filter(isWritten).map((line) => line.slice(1)));
      onLoaded?.(
        lines.filter((line) => !isWritten(line)),
        this.#since,
      );
    });
  }

  /** Becomes the directory's process. Resolves once the code is loaded, with undefined, or when the process has ended. */
  async serve(directory: string, env: Record<string, string>): Promise<Ended | undefined> {
    const child = this.#child;
    if (!child) return this.ended;
    this.port = await freePort();
    this.#since = Date.now();
    this.#output = "";
    const message = {
      directory,
      env: { ...env, SPRY_READY_FD: "3", SERVER_HOST: "127.0.0.1", FUNC_PORT: String(this.port) },
    };
    const ready = new Promise<undefined>((resolve) => {
      (child.stdio[3] as NodeJS.ReadableStream).once("data", () => resolve(undefined));
    });
    (child.stdio[4] as Writable).end(`${JSON.stringify(message)}\n`);
    const ended = await Promise.race([ready, this.ended]);
    if (!ended) this.#report.release();
    return ended;
  }

  /** What it wrote about a request whose handler threw; undefined when nothing comes within a moment. */
  async thrownBy(requestId: string): Promise<string | undefined> {
    const id = requestId.replaceAll(/[^\w-]/g, ".");
    // Of Node.js a message and its frames, of Python a Traceback and its message.
    const pattern = new RegExp(
      `^request ${id} \\(.*\\): (?:the handler threw: (.*(?:\\n[ \\t].*)+)|[a-z ]+\\n(Traceback.*(?:\\n[ \\t].*)+\\n\\w.*\\n))`,
      "m",
    );
    // Its output and its response come by different ways.
    for (let round = 0; round < 10; round++) {
      const [, inNode, inPython] = pattern.exec(stripVTControlCharacters(this.#output)) ?? [];
      const thrown = inNode ?? inPython;
      if (thrown !== undefined) return thrown;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return undefined;
  }

  /** Counts a request; the returned function is to be called when it is over. */
  enter(): () => void {
    this.open++;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      if (--this.open === 0) this.#whenIdle?.();
    };
  }

  /** Ends the process when it has finished its requests, at the latest after `limitMs`. */
  async retire(limitMs: number): Promise<void> {
    if (this.open > 0) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#whenIdle = resolve;
        timer = setTimeout(resolve, limitMs);
        void this.ended.then(() => resolve());
      });
      clearTimeout(timer);
    }
    await this.stop();
  }

  /** SIGTERM, and SIGKILL after two seconds. */
  async stop(): Promise<void> {
    if (this.#isEnded) return;
    this.#signal("SIGTERM");
    const timer = setTimeout(() => this.#signal("SIGKILL"), 2000);
    await this.ended;
    clearTimeout(timer);
  }

  kill(): void {
    this.#signal("SIGKILL");
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this;
    if (pid !== undefined && !this.#isEnded) signalGroup(pid, signal);
  }
}

/** A port on which nothing listens now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
