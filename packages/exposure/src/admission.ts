import { type ApiRule } from "@spry/function";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allow,
  answerConversion,
  answerReview,
  deepEqual,
  refuse,
} from "@spry/kube";
import { v1beta1SpecOf } from "./conversion/convert.ts";
import { convertApiRule } from "./conversion/convert.ts";
import { conversionPath } from "./definitions/ensure-definitions.ts";
import { validateApiRule } from "./validation/validate.ts";
import { validationPath } from "./webhook-location.ts";

/** The webhooks of APIRules: validation (AdmissionReview v1) and conversion (ConversionReview v1). */
export const exposureWebhooks = {
  /** Undefined for a request that is none of theirs. */
  answers(request: Request): Promise<Response> | undefined {
    const { pathname } = new URL(request.url);
    if (pathname === conversionPath) return answerConversion(request, "APIRule", convertApiRule);
    if (pathname === validationPath) return answerReview(request, check);
    return undefined;
  },
};

function check(request: AdmissionRequest): AdmissionResponse {
  const { object, oldObject, operation, subResource } = request;
  const isWrite = (operation === "CREATE" || operation === "UPDATE") && !subResource;
  if (!isWrite || !isApiRule(object)) return allow();
  // What is stored may stay: labels, finalizers and deletion must work on it whatever the rules are now.
  const same =
    isApiRule(oldObject) &&
    deepEqual(object.spec, oldObject.spec) &&
    deepEqual(v1beta1SpecOf(object), v1beta1SpecOf(oldObject));
  if (same || object.metadata.deletionTimestamp) return allow();
  const failures = validateApiRule(object);
  if (failures.length === 0) return allow();
  const causes = failures.map(({ path, message }) => ({
    reason: "FieldValueInvalid",
    message,
    field: path,
  }));
  return refuse(request, causes);
}

function isApiRule(object: unknown): object is ApiRule {
  const { metadata, spec } = (object ?? {}) as Partial<ApiRule>;
  return isMap(metadata) && isMap(spec);
}

function isMap(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
