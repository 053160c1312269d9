/** What the programs of a cluster have in common: they end on signals, and report why when they cannot continue. */
import { type Logger, messageOf } from "@spry/kube";

/**
 * Runs the work until it ends or the Pod is terminated. A failure ends the process with 1, so that the Pod is started
 * again; its last log line has the cause.
 */
export async function runProgram(
  log: Logger,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.once(name, () => {
      log.info({ signal: name }, "stopping");
      stop.abort();
    });
  }
  try {
    await work(stop.signal);
    process.exit(0);
  } catch (error) {
    log.error({ error: messageOf(error) }, "ended");
    process.exit(1);
  }
}

/**
 * For how long a terminating Pod still takes requests that come through a Service: until the EndpointSlice controller
 * and kube-proxy of every node have noticed. The same time as for Functions.
 */
export const leaveMs = 5_000;

export const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
