import { type Function, functions } from "@spry/function";
import { type KubeClient } from "@spry/kube";
import { pause } from "./platform.ts";

/** Until the newest generation runs; throws with its conditions when that takes too long. */
export async function untilRunning(
  client: KubeClient,
  target: { namespace: string; name: string },
  timeoutMs = 150_000,
): Promise<Function> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const fn = await client.get(functions, target);
    const running = fn.status?.conditions?.find(({ type }) => type === "Running");
    const isCurrent = (fn.status?.observedGeneration ?? 0) >= (fn.metadata.generation ?? 0);
    if (isCurrent && running?.status === "True") return fn;
    if (performance.now() > deadline) {
      throw new Error(`${target.name} does not run: ${JSON.stringify(fn.status?.conditions)}`);
    }
    await pause(100);
  }
}
