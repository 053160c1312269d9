import { isInvalid, messageOf } from "@spry/kube";
import { ensureChild, isRefusal } from "../children.ts";
import { desiredDeployment } from "../desired/deployment.ts";
import { done, type Stage } from "../stage.ts";

const refusedRecheckMs = 30_000;

/** Runs the image. How the roll-out fares is told at the end of the pass. */
export const deployWorkload: Stage = {
  name: "deploy",
  condition: "Running",

  async run(draft, { client, caches, settings, references }) {
    const { fn, image = "", buildKey = "" } = draft;
    const inputs = { image, buildKey, references: await references.digest(draft.key, fn) };
    try {
      const desired = desiredDeployment(fn, settings, inputs);
      draft.deployment = (await ensureChild(client, caches.deployments, fn, desired)).object;
      return done;
    } catch (error) {
      const message = messageOf(error);
      if (isInvalid(error)) return { kind: "stop", reason: "DeploymentFailed", message };
      if (!isRefusal(error)) throw error;
      return {
        kind: "wait",
        reason: "DeploymentFailed",
        message,
        recheckAfterMs: refusedRecheckMs,
      };
    }
  },
};
