import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { endChild } from "../kit/index.ts";

/** Programs of others that a test runs next to a platform, as administrators whose kubeconfig is the platform's. */
export class ForeignPrograms {
  /** Where they run, and what they may write to. */
  readonly directory = mkdtempSync(path.join(tmpdir(), "foreign-"));
  /** Of all of them, for a row that fails. */
  output = "";
  readonly #children: ChildProcess[] = [];

  start(program: string, args: string[], kubeconfig: string): void {
    const { directory } = this;
    const env = {
      PATH: process.env["PATH"],
      HOME: directory,
      TMPDIR: directory,
      KUBECONFIG: kubeconfig,
    };
    const child = spawn(program, args, { env, cwd: directory, stdio: ["ignore", "pipe", "pipe"] });
    const name = path.basename(program);
    child.stdout.on("data", (chunk) => (this.output += chunk));
    child.stderr.on("data", (chunk) => (this.output += chunk));
    child.on("error", (error) => (this.output += `\n${name}: ${error.message}\n`));
    child.on("exit", (code, signal) => (this.output += `\n${name} ended: ${code ?? signal}\n`));
    this.#children.push(child);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map((child) => endChild(child)));
  }
}
