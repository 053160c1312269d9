import { functions, heapSizings } from "@spry/function";
import { ensureChild, isFrom } from "../../children.ts";
import { desiredDeployment } from "../desired/deployment.ts";
import { builtOf, type Deps, done, type Draft, type Stage } from "../stage.ts";
import { refused } from "./refused.ts";

/** Runs the image. The end of the pass reports the rollout's state. */
export const deployWorkload: Stage = {
  name: "deploy",
  condition: "Running",

  async run(draft, deps) {
    const { client, caches } = deps;
    const { fn } = draft;
    try {
      const desired = await desiredOf(draft, deps);
      const { object, change } = await ensureChild(client, caches.deployments, fn, desired);
      draft.deployment = object;
      if (deps.foreignEdits.undone(draft.key, object, change === "updated")) {
        const { name } = draft;
        const message =
          `Deployment ${name} was changed by another client and is again what the Function specifies; edit the ` +
          `Function instead; \`spry rollback ${name}\` returns to an earlier revision`;
        deps.events.record(functions, fn, {
          type: "Warning",
          reason: "DeploymentRestored",
          message,
        });
      }
      return done;
    } catch (error) {
      return refused(error, "DeploymentFailed");
    }
  },

  forget(key, { references, foreignEdits }) {
    references.forget(key);
    foreignEdits.forget(key);
  },
};

/**
 * The desired Deployment. One that was written by a version with other heap limits is left unchanged until
 * something else about it changes: an upgrade of Spry alone causes no rollout (ADR 0003).
 */
async function desiredOf(draft: Draft, deps: Deps) {
  const { key, fn } = draft;
  const { caches, settings, references } = deps;
  const inputs = { ...builtOf(draft), references: await references.digest(key, fn) };
  const desired = desiredDeployment(fn, settings, inputs);
  const { namespace, name } = desired.metadata;
  const observed = caches.deployments.get(`${namespace}/${name}`);
  if (!observed || isFrom(observed, desired)) return desired;
  const formers = heapSizings
    .slice(1)
    .map((heapSizing) => desiredDeployment(fn, settings, { ...inputs, heapSizing }));
  return formers.find((former) => isFrom(observed, former)) ?? desired;
}
