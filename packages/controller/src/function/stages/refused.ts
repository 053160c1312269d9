import { type Reason } from "@spry/function";
import { isBadRequest, isInvalid, messageOf } from "@spry/kube";
import { isRefusal } from "../../children.ts";
import { type Outcome } from "../stage.ts";

/** Quotas, policies and other objects change without a sign that the controller could watch. */
export const refusedRecheckMs = 30_000;

/**
 * How a stage ends whose write the API server has refused: with `stop` when the object itself is invalid, which only an edit
 * of the Function can change; with `wait` when a quota, a policy or another client's object is in the way. Errors
 * of another kind are thrown again.
 */
export function refused(
  error: unknown,
  reason: Reason,
  options: { describe?: (text: string) => string; invalid?: "stop" | "wait" } = {},
): Outcome {
  const { describe = (text) => text, invalid = "stop" } = options;
  const message = describe(messageOf(error));
  // Webhooks of Knative refuse what is invalid as a bad request.
  const isWrong = isInvalid(error) || isBadRequest(error);
  if (isWrong && invalid === "stop") return { kind: "stop", reason, message };
  if (!isWrong && !isRefusal(error) && !isUnknownField(error)) throw error;
  return { kind: "wait", reason, message, recheckAfterMs: refusedRecheckMs };
}

/**
 * Another installation's definition, of an earlier version perhaps, lacks a field that is applied. API servers answer so with
 * a 500 (`k8s.io/apimachinery/pkg/util/managedfields`).
 */
function isUnknownField(error: unknown): boolean {
  return /^failed to create typed patch object .*: field not declared in schema/s.test(
    messageOf(error),
  );
}
