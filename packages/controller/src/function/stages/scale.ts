import { isControlledBy, resources } from "@spry/kube";
import { deleteIfThere, ensureChild } from "../../children.ts";
import { desiredAutoscaler } from "../desired/autoscaler.ts";
import { done, type Stage } from "../stage.ts";

/** Lets a HorizontalPodAutoscaler decide about replicas, where the Function gives it room. */
export const scaleWorkload: Stage = {
  name: "scale",
  condition: "Running",

  async run({ fn, key }, { client, caches, settings }) {
    const desired = desiredAutoscaler(fn, settings.targetCpuUtilization);
    if (desired) {
      await ensureChild(client, caches.autoscalers, fn, desired);
      return done;
    }
    const former = caches.autoscalers.get(key);
    if (former && isControlledBy(former, fn)) {
      await deleteIfThere(client, resources.horizontalPodAutoscalers, former);
    }
    return done;
  },
};
