import { ensureChild } from "../../children.ts";
import { desiredService } from "../desired/service.ts";
import { done, type Stage } from "../stage.ts";
import { refused } from "./refused.ts";
import { isAwaitingDeployment } from "./retire-kservice.ts";

/** Makes the Function reachable by its name. */
export const exposeService: Stage = {
  name: "expose",
  condition: "Running",

  async run(draft, deps) {
    const { fn } = draft;
    const { client, caches } = deps;
    // While a Knative Service serves, its Service stays, so that requests still find it.
    if (isAwaitingDeployment(draft, deps)) return done;
    try {
      await ensureChild(client, caches.services, fn, desiredService(fn));
      return done;
    } catch (error) {
      return refused(error, "ServiceFailed", { invalid: "wait" });
    }
  },
};
