import { type Clock, type Container, type OutboundGuard, sleep } from "@spry/kube";
import { type SandboxContainer } from "../sandbox/sandbox.ts";
import { httpGet } from "./http-get-action.ts";

type Hook = NonNullable<NonNullable<Container["lifecycle"]>["preStop"]> & {
  /** Kubernetes 1.30; not in the types yet. */
  sleep?: { seconds: number };
};

/**
 * Runs a `postStart` or `preStop` hook to its end, for at most `timeoutMs`. Throws when it fails; an HTTP
 * answer of any status is a success, and `tcpSocket`, which the API only keeps for compatibility, never
 * (LifecycleHandler of the API reference).
 */
export async function runHook(
  hook: Hook,
  target: {
    ip: string;
    container: Container;
    process: SandboxContainer;
    /** See `HttpGetTarget`. */
    guard?: OutboundGuard | undefined;
  },
  timeoutMs: number,
  clock: Clock,
): Promise<void> {
  const { exec, httpGet: action } = hook;
  if (hook.sleep) return sleep(clock, Math.min(hook.sleep.seconds * 1000, timeoutMs));
  if (exec) {
    const { exitCode, output } = await target.process.exec(exec.command ?? [], { timeoutMs });
    if (exitCode !== 0) throw new Error(`command exited with ${exitCode}: ${output}`);
  } else if (action) await httpGet(action, target, { who: "kube-lifecycle", timeoutMs });
  else {
    const given = Object.keys(hook).join(", ") || "nothing";
    throw new Error(`Cannot run handler: it has ${given}, and must have exec, httpGet or sleep`);
  }
}
