import { type Function, functions } from "@spry/function";
import { type HorizontalPodAutoscaler, isControlledBy, resources } from "@spry/kube";
import { deleteIfThere, ensureChild } from "../../children.ts";
import { desiredAutoscaler } from "../desired/autoscaler.ts";
import { type Deps, done, type Draft, type Stage } from "../stage.ts";

/** Lets a HorizontalPodAutoscaler decide about replicas, where the Function gives it room. */
export const scaleWorkload: Stage = {
  name: "scale",
  condition: "Running",

  async run(draft, deps) {
    const { fn, key } = draft;
    const { client, caches, settings } = deps;
    const desired = desiredAutoscaler(fn, settings.targetCpuUtilization);
    if (desired) {
      await ensureChild(client, caches.autoscalers, fn, desired);
      reportRival(draft, deps);
      return done;
    }
    reported.delete(key);
    const former = caches.autoscalers.get(key);
    if (former && isControlledBy(former, fn)) {
      await deleteIfThere(client, resources.horizontalPodAutoscalers, former);
    }
    return done;
  },

  forget: (key) => void reported.delete(key),
};

/** The last Event for each Function, so that it is not repeated with every pass. */
const reported = new Map<string, string>();

/** Another autoscaler scales the same Function as that of `scaleConfig`: each reverts the other's changes. */
function reportRival({ fn, key }: Draft, { caches, events }: Deps): void {
  const rival = caches.autoscalers.byIndex("scaled", key).find((each) => !isControlledBy(each, fn));
  const message = rival && rivalryOf(fn, rival);
  if (message && reported.get(key) !== message)
    events.record(functions, fn, { type: "Warning", reason: "ScaledTwice", message });
  if (message) reported.set(key, message);
  else reported.delete(key);
}

function rivalryOf({ spec }: Function, { metadata }: HorizontalPodAutoscaler): string {
  const { name = "", ownerReferences = [] } = metadata;
  const scaledObject = ownerReferences.find(({ kind }) => kind === "ScaledObject");
  const other = scaledObject
    ? `ScaledObject ${scaledObject.name}`
    : `HorizontalPodAutoscaler ${name}`;
  const { minReplicas, maxReplicas } = spec.scaleConfig ?? {};
  return (
    `spec.scaleConfig (${minReplicas} to ${maxReplicas} replicas) and ${other} both scale this Function and overrule each ` +
    `other: remove spec.scaleConfig, or delete ${other}`
  );
}
