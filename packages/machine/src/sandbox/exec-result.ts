import { finished } from "node:stream/promises";
import { type Clock, messageOf, sleep } from "@spry/kube";
import { type ExecProcess } from "./exec-process.ts";
import { type ExecResult } from "./sandbox.ts";

const maxOutput = 10 * 1024;
/** What a command has written before its end is in its pipes. */
const lastOutputMs = 1000;

/** What a command says and how it ends, within so much time. */
export async function resultOf(
  exec: ExecProcess,
  timeoutMs: number,
  clock: Clock,
): Promise<ExecResult> {
  let [output, timedOut] = ["", false];
  for (const stream of [exec.stdout, exec.stderr])
    stream?.on("data", (chunk: Buffer) => {
      if (output.length < maxOutput) output += chunk.toString();
    });
  // One that ignores SIGTERM would hold up the end of its Pod.
  const cancel = clock.after(timeoutMs, () => {
    timedOut = true;
    exec.kill();
  });
  try {
    const { exitCode } = await exec.exited;
    await Promise.race([drained(exec), sleep(clock, lastOutputMs)]);
    if (timedOut) return { exitCode: -1, output: `timed out after ${timeoutMs} ms` };
    return { exitCode, output: output.slice(0, maxOutput) };
  } catch (error) {
    return { exitCode: 126, output: messageOf(error) };
  } finally {
    cancel();
  }
}

async function drained({ stdout, stderr }: ExecProcess): Promise<void> {
  const streams = [stdout, stderr].filter((stream) => stream !== undefined);
  const ends = streams.map((stream) => finished(stream, { writable: false }));
  await Promise.allSettled(ends);
}
