import { deprecationOf, type FunctionStatus, type Reason, runtimeOf } from "@spry/function";
import { isInvalid, messageOf } from "@spry/kube";
import { ensureChild, isRefusal } from "../children.ts";
import { conditionOf } from "../conditions.ts";
import { desiredConfigMap } from "../desired/config-map.ts";
import { type Draft, type Outcome, type Stage } from "../stage.ts";

const refusedRecheckMs = 30_000;

/** Puts the code where a build can mount it. */
export const resolveSource: Stage = {
  name: "source",
  condition: "ConfigurationReady",

  async run(draft, { client, caches }) {
    const { fn, status } = draft;
    if (fn.spec.source.gitRepository) {
      const message =
        "Sources update failed, reason: Git sources are not supported by this version yet: use source.inline";
      return { kind: "stop", reason: "SourceUpdateFailed", message };
    }
    try {
      const { change } = await ensureChild(client, caches.configMaps, fn, desiredConfigMap(fn));
      return ready(draft, reasonOf(change, status));
    } catch (error) {
      const message = `Sources update failed, reason: ${messageOf(error)}`;
      if (isInvalid(error)) return { kind: "stop", reason: "SourceUpdateFailed", message };
      if (!isRefusal(error)) throw error;
      return {
        kind: "wait",
        reason: "SourceUpdateFailed",
        message,
        recheckAfterMs: refusedRecheckMs,
      };
    }
  },
};

function reasonOf(change: "none" | "created" | "updated", status: FunctionStatus): Reason {
  if (change === "created") return "ConfigMapCreated";
  const previous = conditionOf(status, "ConfigurationReady");
  return change === "none" && previous?.status === "True" ? previous.reason : "ConfigMapUpdated";
}

function ready({ fn, name }: Draft, reason: Reason): Outcome {
  const text =
    reason === "ConfigMapCreated" ? `ConfigMap ${name} created` : `Updated ConfigMap: "${name}"`;
  const deprecation = deprecationOf(runtimeOf(fn));
  const message = deprecation ? `${text}. Warning: ${deprecation}` : text;
  return { kind: "done", reason, message };
}
