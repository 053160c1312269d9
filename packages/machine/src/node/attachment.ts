import { PassThrough, Readable } from "node:stream";
import { type Clock } from "@spry/kube";
import { type ExecProcess } from "../sandbox/exec-process.ts";
import { type SandboxContainer } from "../sandbox/sandbox.ts";
import { type ContainerRun } from "./container-run.ts";
import { readLog } from "./log-reader.ts";

/**
 * A container's own streams, as if they were a command's: what it writes from now on, until it ends.
 * Its log holds both of its outputs, so both come as one.
 */
export function attachTo(
  run: ContainerRun,
  process: SandboxContainer,
  { stdin, clock }: { stdin: boolean; clock: Clock },
): ExecProcess {
  const left = new AbortController();
  const isRunning = () => run.process === process;
  // Taken at once: an answer to the first input must not fall before the beginning.
  const offset = run.log?.end ?? 0;
  const options = { follow: true, previous: false, timestamps: false, tailLines: 0, offset };
  const stdout = run.log
    ? Readable.from(readLog(run.log, options, isRunning, clock, left.signal), { objectMode: false })
    : new PassThrough().end();
  return {
    stdin: stdin && run.spec.stdin ? process.openStdin?.() : undefined,
    stdout,
    // The Pod's status reports how it ends; watching it to its end has succeeded.
    exited: process.exited.then(() => ({ exitCode: 0 })),
    resize: (size) => process.resize?.(size),
    // The container lives on: only this look at it ends.
    kill: () => left.abort(),
  };
}
