/** `spry dev` as a process, for tests. */
import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { endChild, hasEnded } from "../kit/index.ts";
import { cleanEnvironment, pause, root } from "./platform.ts";

export interface DevProcess {
  child: ChildProcess;
  /** By address, because names of localhost may lead to IPv6. */
  url: string;
  /** All that it has printed. */
  output: () => string;
  /** As Ctrl-C; returns the exit code. */
  end: () => Promise<number | null>;
}

/** Starts it on a free port; resolves once it listens. */
export async function startSpryDev(args: string[], env: NodeJS.ProcessEnv): Promise<DevProcess> {
  const spry = path.join(root, "packages/cli/bin/spry.mjs");
  const child = spawn(process.execPath, [spry, "dev", "--port", "0", ...args], {
    env: { ...cleanEnvironment(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const end = () => endChild(child, "SIGINT");
  for (;;) {
    // Of several Functions the first one's.
    const url = /(?:at |"url":"|^ +1 +\S+ +)(http:[^\s"]+)/m.exec(output)?.[1];
    if (url)
      return { child, url: url.replace("localhost", "127.0.0.1"), output: () => output, end };
    if (hasEnded(child)) throw new Error(`spry dev ended:\n${output}`);
    await pause(10);
  }
}
