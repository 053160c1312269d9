import { type ChildProcessByStdio } from "node:child_process";
import { randomBytes } from "node:crypto";
import { type Readable, type Writable } from "node:stream";
import { signalGroup, startProgram } from "@spry/kube";
import { commandEnvironment, commandTimeoutMs, problemOf } from "./commands.ts";

type Shell = ChildProcessByStdio<Writable, Readable, null> & { readonly pid: number };

/** Of what a script says, the end. */
const maxOutput = 64 * 1024;

/**
 * A shell that stays, for scripts one after the other: to start a program stops a process of this size for some milliseconds, and
 * costs a shell nothing. It ends with the platform.
 */
export class CommandShell {
  readonly #timeoutMs: number;
  #last: Promise<void> = Promise.resolve();
  #shell: Shell | undefined;

  constructor(timeoutMs = commandTimeoutMs) {
    this.#timeoutMs = timeoutMs;
  }

  /** The script's input is empty, and its first command that fails ends it. Throws with what it has said. */
  run(script: string): Promise<void> {
    const running = this.#last.then(() => this.#run(script));
    this.#last = running.catch(() => {});
    return running;
  }

  /** Ends the shell, after what it has been given. */
  close(): void {
    void this.#last.then(() => this.#shell?.stdin.end());
  }

  async #run(script: string): Promise<void> {
    const shell = (this.#shell ??= await this.#start());
    // What runs is waited for; a shell that waits keeps no platform running.
    setReferenced(shell, true);
    try {
      await this.#result(shell, script);
    } finally {
      setReferenced(shell, false);
    }
  }

  /** In a group of its own: Ctrl-C is for the platform, which needs it to remove what there is. */
  async #start(): Promise<Shell> {
    const shell = (await startProgram("/bin/sh", ["-c", "exec 2>&1; exec /bin/sh -s"], {
      env: commandEnvironment,
      detached: true,
      stdio: ["pipe", "pipe", "ignore"],
    })) as Shell;
    // Of a signal that could not be sent.
    shell.on("error", () => {});
    shell.stdin.on("error", () => {});
    shell.once("close", () => {
      if (this.#shell === shell) this.#shell = undefined;
    });
    return shell;
  }

  #result(shell: Shell, script: string): Promise<void> {
    const mark = randomBytes(12).toString("hex");
    const end = new RegExp(`${mark} (\\d+)\\n$`);
    let said = "";
    return new Promise((resolve, reject) => {
      const settle = (problem?: string) => {
        clearTimeout(timer);
        shell.stdout.off("data", hear);
        shell.off("error", fail).off("close", leave);
        if (problem === undefined) resolve();
        else reject(new Error(problem));
      };
      const hear = (chunk: Buffer) => {
        said = (said + chunk.toString()).slice(-maxOutput);
        const code = end.exec(said)?.[1];
        if (code === "0") settle();
        else if (code !== undefined) settle(problemOf(said.replace(end, ""), `exit code ${code}`));
      };
      const fail = (error: Error) => settle(error.message);
      const leave = () => settle(problemOf(said, "the shell has ended"));
      const timer = setTimeout(() => {
        this.#shell = undefined;
        signalGroup(shell.pid, "SIGKILL");
        settle(`it took longer than ${this.#timeoutMs / 1000} s`);
      }, this.#timeoutMs);
      shell.stdout.on("data", hear);
      shell.once("error", fail).once("close", leave);
      shell.stdin.write(`(\nset -e\n${script}\n) </dev/null\nprintf '%s %s\\n' ${mark} "$?"\n`);
    });
  }
}

function setReferenced(shell: Shell, isReferenced: boolean): void {
  const name = isReferenced ? "ref" : "unref";
  shell[name]();
  for (const pipe of [shell.stdin, shell.stdout])
    (pipe as unknown as { ref(): void; unref(): void })[name]();
}
