import { deprecationOf, type FunctionStatus, type Reason, runtimeOf } from "@spry/function";
import { ensureChild } from "../../children.ts";
import { conditionOf, withWarnings } from "../conditions.ts";
import { desiredConfigMap } from "../desired/config-map.ts";
import { type Draft, type Outcome, type Stage } from "../stage.ts";
import { forgetGitSource, resolveGitSource } from "./git-source.ts";
import { resolveImageSource } from "./image-source.ts";
import { refused } from "./refused.ts";

/** Puts the code where a build can mount it, or finds out which commit to build. */
export const resolveSource: Stage = {
  name: "source",
  condition: "ConfigurationReady",

  async run(draft, deps) {
    const { fn, status } = draft;
    const { client, caches, commits } = deps;
    if (fn.spec.source.gitRepository) return resolveGitSource(draft, deps);
    if (fn.spec.source.image !== undefined) return resolveImageSource(draft, deps);
    commits.forget(draft.key);
    forgetGitSource(status);
    try {
      const { change } = await ensureChild(client, caches.configMaps, fn, desiredConfigMap(fn));
      return ready(draft, reasonOf(change, status));
    } catch (error) {
      const describe = (text: string) => `Sources update failed, reason: ${text}`;
      return refused(error, "SourceUpdateFailed", { describe });
    }
  },

  forget: (key, { commits }) => commits.forget(key),
};

function reasonOf(change: "none" | "created" | "updated", status: FunctionStatus): Reason {
  if (change === "created") return "ConfigMapCreated";
  const previous = conditionOf(status, "ConfigurationReady");
  return change === "none" && previous?.status === "True" ? previous.reason : "ConfigMapUpdated";
}

function ready({ fn, name }: Draft, reason: Reason): Outcome {
  const text =
    reason === "ConfigMapCreated" ? `ConfigMap ${name} created` : `Updated ConfigMap: "${name}"`;
  const message = withWarnings(text, [deprecationOf(runtimeOf(fn))]);
  return { kind: "done", reason, message };
}
