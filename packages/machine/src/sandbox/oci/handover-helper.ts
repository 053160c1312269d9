import { type ChildProcessByStdio } from "node:child_process";
import { type Readable, type Writable } from "node:stream";
import { type Clock, startProgram } from "@spry/kube";
import { said, unref } from "../warm/warm-process.ts";
import { prepared } from "./handover.ts";
import { runtimePath } from "./runtime-process.ts";

/** How long mounting may take; it takes some milliseconds. */
const workMs = 2_000;
const maxReport = 4096;

/** The program that waits next to a container, and makes it a Pod's. It ends with the platform. */
export class HandoverHelper {
  /** Resolves when it has nothing left to prepare. */
  readonly prepared: Promise<void>;
  /** With its exit code. */
  readonly ended: Promise<number>;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  #report = "";

  /** Without anything of the platform's environment. Throws `NotStarted`. */
  static async start([file = "", ...args]: readonly string[]): Promise<HandoverHelper> {
    const child = await startProgram(file, args, {
      env: { PATH: runtimePath },
      cwd: "/",
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    return new HandoverHelper(child as ChildProcessByStdio<Writable, Readable, Readable>);
  }

  private constructor(child: ChildProcessByStdio<Writable, Readable, Readable>) {
    this.#child = child;
    // Of a signal that could not be sent.
    child.on("error", () => {});
    this.ended = new Promise((resolve) => {
      child.once("close", (code) => resolve(code ?? 137));
    });
    this.prepared = said(child.stdout, prepared);
    child.stdin.on("error", () => {});
    child.stderr.on("data", (chunk: Buffer) => {
      this.#report = (this.#report + chunk.toString()).slice(-maxReport);
    });
    child.unref();
    for (const pipe of [child.stdin, child.stderr]) unref(pipe);
  }

  /** Gives it the lines that it waits for. Throws, with what it has said, unless it has done all of it and is gone. */
  async work(lines: string, clock: Clock): Promise<void> {
    const late = Promise.withResolvers<undefined>();
    const cancel = clock.after(workMs, () => late.resolve(undefined));
    this.#child.stdin.end(lines);
    const code = await Promise.race([this.ended, late.promise]);
    cancel();
    if (code !== 0)
      throw new Error(`completing its file system: ${this.#report.trim() || "no answer"}`);
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }
}
