import { type Clock, type Container, type ContainerStatus } from "@spry/kube";
import { type ExitStatus } from "../sandbox/sandbox.ts";

export type ContainerState = NonNullable<ContainerStatus["state"]>;
export type Terminated = NonNullable<ContainerState["terminated"]>;

/** As the API writes times: whole seconds. */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}

/** "the container was killed: it exceeded its memory limit (128Mi); …". */
export function endInWords(
  { exitCode, reason, signal }: ExitStatus,
  { resources }: Container,
  lastWords = "",
): string {
  const memory = resources?.limits?.["memory"];
  const limit = `memory limit${memory ? ` (${memory})` : ""}; a Function has it in spec.resourceConfiguration.function`;
  if (reason === "OOMKilled") return `the container was killed: it exceeded its ${limit}`;
  if (isHeapFull(lastWords))
    return `the container ended: its heap was full, which is a part of its ${limit}`;
  return signal
    ? `the container was ended by ${signal}`
    : `the container ended with exit code ${exitCode}`;
}

/** Node.js ends itself then, with a dump. */
export const isHeapFull = (lastWords: string): boolean => lastWords.includes("heap out of memory");

/** A run that has ended, as the Pod's status shows it. */
export function terminatedState(
  exit: ExitStatus,
  message: string | undefined,
  { startedAt, containerID }: { startedAt: number; containerID: string },
): Terminated {
  return {
    exitCode: exit.exitCode,
    reason: exit.reason ?? (exit.exitCode === 0 ? "Completed" : "Error"),
    ...(message ? { message } : {}),
    startedAt: timeOf(startedAt),
    finishedAt: timeOf(exit.finishedAt),
    containerID,
  };
}

/** A run that could not begin, because this machine lacks what its image needs. */
export function startErrorState(message: string, clock: Clock): Terminated {
  const now = timeOf(clock.now());
  return { exitCode: 128, reason: "StartError", message, startedAt: now, finishedAt: now };
}

/** A run that an earlier agent started and this one has not found. */
export function lostState(known: ContainerStatus, clock: Clock): Terminated {
  const startedAt = known.state?.running?.startedAt;
  return {
    exitCode: 137,
    reason: "ContainerStatusUnknown",
    message: "The container could not be located when the node agent started again",
    ...(startedAt ? { startedAt } : {}),
    finishedAt: timeOf(clock.now()),
    ...(known.containerID ? { containerID: known.containerID } : {}),
  };
}
