/** A command that runs until it is ended, as a process without a terminal. */
import { spawn } from "node:child_process";
import path from "node:path";
import { onTestFinished } from "vitest";
import { endChild, hasEnded, patience } from "../kit/index.ts";
import { cleanEnvironment, pause, root } from "./platform.ts";

export interface SpryProcess {
  /** Resolves with the match once its output has it; throws when it has ended without. */
  prints(what: RegExp): Promise<RegExpExecArray>;
  /** As Ctrl-C; returns the exit code. */
  end(): Promise<number | null>;
}

export function startSpry(args: readonly string[], env: NodeJS.ProcessEnv): SpryProcess {
  const spry = path.join(root, "packages/cli/bin/spry.mjs");
  const child = spawn(process.execPath, [spry, ...args], {
    env: { ...cleanEnvironment(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return {
    async prints(what) {
      const deadline = performance.now() + patience.cluster;
      for (;;) {
        const found = what.exec(output);
        if (found) return found;
        if (hasEnded(child) || performance.now() > deadline)
          throw new Error(`${what} is not in\n${output}`);
        await pause(20);
      }
    },
    end: () => endChild(child, "SIGINT"),
  };
}
