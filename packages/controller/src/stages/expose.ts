import { isInvalid, messageOf } from "@spry/kube";
import { ensureChild, isRefusal } from "../children.ts";
import { desiredService } from "../desired/service.ts";
import { done, type Stage } from "../stage.ts";
import { isAwaitingDeployment } from "./retire-kservice.ts";

const refusedRecheckMs = 30_000;

/** Makes the Function reachable by its name. */
export const exposeService: Stage = {
  name: "expose",
  condition: "Running",

  async run(draft, deps) {
    const { fn } = draft;
    const { client, caches } = deps;
    // As long as a Knative Service has the requests, they go on finding it.
    if (isAwaitingDeployment(draft, deps)) return done;
    try {
      await ensureChild(client, caches.services, fn, desiredService(fn));
      return done;
    } catch (error) {
      if (!isRefusal(error) && !isInvalid(error)) throw error;
      const message = messageOf(error);
      return { kind: "wait", reason: "ServiceFailed", message, recheckAfterMs: refusedRecheckMs };
    }
  },
};
