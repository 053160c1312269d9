import { conditionTypes, type Function, isServedOnDemand } from "@spry/function";
import { getCondition, type ObjectKey } from "@spry/kube";

/** Why a Function has no Pod that could answer. */
export interface Explanation {
  /** A condition's reason, or `NoReadyEndpoint`. */
  reason: string;
  message: string;
  /**
   * `deploying`: its first version is on the way; `absent`: it has run, but no Pod is ready now;
   * `failed`: its owner must act; `scaledToZero`: its replicas were set to 0, by hand or by a scaler.
   */
  state: "deploying" | "absent" | "failed" | "scaledToZero";
}

const maxMessageLength = 300;
const maxReadLength = 8 * 1024;

/**
 * The first condition that is not True decides; they follow each other in that order. Without the
 * Function itself, only its Service is known. To the public the condition's message is not shown: it may quote
 * the output of a build or of the code, with paths of the machine.
 */
export function explain(key: ObjectKey, fn: Function | undefined, isPublic: boolean): Explanation {
  const conditions = fn?.status?.conditions;
  const blocking = conditionTypes
    .map((type) => getCondition(conditions, type))
    .find((condition) => condition !== undefined && condition.status !== "True");
  const name = `Function ${key}`;
  if (blocking) {
    const why = isPublic
      ? "the reason is in the Function's conditions"
      : gistOf(blocking.message ?? "") || blocking.reason;
    return {
      reason: blocking.reason ?? "NoReadyEndpoint",
      message: `${name} is not ready: ${why}`,
      state: blocking.status === "False" ? "failed" : "deploying",
    };
  }
  if (fn?.spec.replicas === 0 && !isServedOnDemand(fn.spec)) {
    const message = `${name} is scaled to zero: its spec.replicas is 0, and requests do not change that`;
    return { reason: "ScaledToZero", message, state: "scaledToZero" };
  }
  const state = fn && !getCondition(conditions, "Running") ? "deploying" : "absent";
  return { reason: "NoReadyEndpoint", message: `${name} has no Pod that is ready`, state };
}

/**
 * A message's first line and, from the log that may follow it, the line that names the error. Not
 * all of it: a stack trace is for users who may read the Function, not for all who may call it.
 */
function gistOf(message: string): string {
  const [first = "", ...rest] = message.slice(0, maxReadLength).split("\n");
  const error = rest.find((line) => /^[A-Z]\w*(?:Error|Exception)\b/.test(line));
  const line = first.replace(/[\s:…]+$/, "");
  const isNew = error !== undefined && !line.includes(error);
  return (isNew ? `${line}: ${error}` : line).slice(0, maxMessageLength);
}
