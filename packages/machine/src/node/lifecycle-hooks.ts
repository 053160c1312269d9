import { type Clock, type Container, sleep } from "@spry/kube";
import { type SandboxContainer } from "../sandbox/sandbox.ts";
import { probeHttp } from "./probes.ts";

type Hook = NonNullable<NonNullable<Container["lifecycle"]>["preStop"]> & {
  /** Kubernetes 1.30; not in the types yet. */
  sleep?: { seconds: number };
};

/** Runs a `postStart` or `preStop` hook to its end, for at most `timeoutMs`. Throws when it fails. */
export async function runHook(
  hook: Hook,
  target: { ip: string; container: Container; process: SandboxContainer },
  timeoutMs: number,
  clock: Clock,
): Promise<void> {
  const { exec, httpGet } = hook;
  if (hook.sleep) return sleep(clock, Math.min(hook.sleep.seconds * 1000, timeoutMs));
  if (exec) {
    const { exitCode, output } = await target.process.exec(exec.command ?? [], { timeoutMs });
    if (exitCode !== 0) throw new Error(`command exited with ${exitCode}: ${output}`);
  } else if (httpGet) {
    const { success, message } = await probeHttp(httpGet, target, timeoutMs);
    if (!success) throw new Error(message);
  }
}
