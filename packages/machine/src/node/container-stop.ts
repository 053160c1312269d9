import { type Clock, type Container, messageOf, type OutboundGuard } from "@spry/kube";
import { type SandboxContainer } from "../sandbox/sandbox.ts";
import { runHook } from "./lifecycle-hooks.ts";

/** After a preStop hook that took all of the grace period (minimumGracePeriodInSeconds of the kubelet). */
const leastGraceMs = 2_000;

export interface StopOptions {
  ip: string;
  container: Container;
  process: SandboxContainer;
  /** See `HttpGetTarget`. */
  guard: OutboundGuard | undefined;
  clock: Clock;
  onHookFailed: (message: string) => void;
}

/**
 * Ends a run: preStop hook, SIGTERM, and SIGKILL when the grace period is over, which the hook is a part of. Resolves when SIGTERM
 * has been sent, not when the run has ended.
 */
export async function endGracefully(options: StopOptions, graceMs: number): Promise<void> {
  const { container, process, guard, clock, ip, onHookFailed } = options;
  const hook = container.lifecycle?.preStop;
  let leftMs = graceMs;
  if (hook && graceMs > 0) {
    const begin = clock.elapsed();
    await runHook(hook, { ip, container, process, guard }, graceMs, clock).catch((error: unknown) =>
      onHookFailed(`PreStopHook failed: ${messageOf(error)}`),
    );
    leftMs = Math.max(graceMs - (clock.elapsed() - begin), leastGraceMs);
  }
  process.kill("SIGTERM");
  killAfter(leftMs, process, clock);
}

export function killAfter(ms: number, process: SandboxContainer, clock: Clock): void {
  const cancel = clock.after(ms, () => process.kill("SIGKILL"));
  void process.exited.then(cancel);
}
