import { isControlledBy } from "@spry/kube";
import { deleteIfThere } from "../../children.ts";
import { haveReady, slicesOf } from "../serving/service-slices.ts";
import { done, type Draft, type Deps, type Stage } from "../stage.ts";

const handOverRecheckMs = 250;

/** Whether a Knative Service still has the requests, and the Deployment is not yet able to take them over. */
export function isAwaitingDeployment({ fn, key, deployment }: Draft, { caches }: Deps): boolean {
  const former = caches.kservices.get(key);
  if (!former || !isControlledBy(former, fn)) return false;
  const { metadata, status } = deployment ?? {};
  const isCurrent = (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 1);
  return !isCurrent || (status?.availableReplicas ?? 0) === 0;
}

/** Removes the Knative Service of a Function that has a Deployment again, some seconds after that has the requests. */
export const retireKService: Stage = {
  name: "hand over",
  condition: "Running",

  async run({ fn, key, namespace, name }, { client, caches, handOvers }) {
    const former = caches.kservices.get(key);
    if (!former || !isControlledBy(former, fn)) {
      handOvers.forget(key);
      return done;
    }
    const { others, gateway } = await slicesOf(client, { namespace, name });
    if (!haveReady(others) || gateway.length > 0) {
      handOvers.forget(key);
      return { ...done, recheckAfterMs: handOverRecheckMs };
    }
    const remainingMs = handOvers.remainingMs(key);
    if (remainingMs > 0) return { ...done, recheckAfterMs: remainingMs };
    await deleteIfThere(client, caches.kservices.resource, former);
    handOvers.forget(key);
    return done;
  },

  forget: (key, { handOvers }) => handOvers.forget(key),
};
