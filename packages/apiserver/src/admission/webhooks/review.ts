import { randomUUID } from "node:crypto";
import { type Status, StatusError } from "@spry/kube";
import { type AdmissionRequest } from "../attributes.ts";
import { type WebhookPhase } from "./webhook.ts";
import { parseJson } from "../../json.ts";

/** `k8s.io/api/admission/v1 AdmissionResponse`. */
export interface AdmissionResponse {
  uid?: string;
  allowed?: boolean;
  status?: Partial<Status>;
  patch?: string;
  patchType?: string;
  warnings?: string[];
  auditAnnotations?: Record<string, string>;
}

/** The question to a webhook, in the first version of those it takes. */
export interface Review {
  uid: string;
  apiVersion: string;
  body: string;
}

const group = "admission.k8s.io";
const apiVersions = [`${group}/v1`, `${group}/v1beta1`];

/** Throws an Error when the webhook takes no version that is known. */
export function reviewOf(request: AdmissionRequest, versions: readonly string[]): Review {
  const version = versions.find((each) => each === "v1" || each === "v1beta1");
  if (!version) {
    throw new Error(
      "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)",
    );
  }
  const uid = randomUUID();
  const apiVersion = `${group}/${version}`;
  const body = JSON.stringify({
    kind: "AdmissionReview",
    apiVersion,
    request: { uid, ...request },
  });
  return { uid, apiVersion, body };
}

/** Reads the answer. Throws an Error with what is wrong with it. */
export function responseOf(answer: string, review: Review, phase: WebhookPhase): AdmissionResponse {
  const read = parsed(answer);
  const { response } = read;
  const invalid = (problem: string) => new Error(`received invalid webhook response: ${problem}`);
  const { apiVersion = "", kind = "" } = read;
  if (kind && (kind !== "AdmissionReview" || !apiVersions.includes(apiVersion))) {
    throw new Error(
      `failed to call webhook: no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} in scheme "pkg/runtime/scheme.go:111"`,
    );
  }
  if (!response) throw invalid("webhook response was absent");
  if (review.apiVersion === `${group}/v1beta1`) {
    return { ...response, ...(response.patch && { patchType: "JSONPatch" }) };
  }
  const { uid = "", patch, patchType } = response;
  if (uid !== review.uid) {
    throw invalid(
      `expected response.uid=${JSON.stringify(review.uid)}, got ${JSON.stringify(uid)}`,
    );
  }
  if (apiVersion !== review.apiVersion || !kind) {
    const received = apiVersion.includes("/") ? apiVersion : `/${apiVersion}`;
    throw invalid(
      `expected webhook response of ${review.apiVersion}, Kind=AdmissionReview, got ${received}, Kind=${kind}`,
    );
  }
  if (phase === "validating") {
    if (patch) throw invalid("validating webhook may not return response.patch");
    if (patchType != null) throw invalid("validating webhook may not return response.patchType");
  }
  if (patch && patchType == null)
    throw invalid("webhook returned response.patch but not response.patchType");
  if (!patch && patchType != null)
    throw invalid("webhook returned response.patchType but not response.patch");
  if (patchType === "") throw invalid('webhook returned invalid response.patchType of ""');
  return response;
}

function parsed(answer: string) {
  let read: unknown;
  try {
    read = parseJson(answer);
  } catch {
    throw new Error(
      "failed to call webhook: couldn't get version/kind; json parse error: the response is not JSON",
    );
  }
  return ((typeof read === "object" && read) || {}) as {
    apiVersion?: string;
    kind?: string;
    response?: AdmissionResponse;
  };
}

/** The refusal of a webhook, in its own words and with its own code. */
export function refusal(name: string, { status }: AdmissionResponse): StatusError {
  const denied = `admission webhook ${JSON.stringify(name)} denied the request`;
  const explanation = status?.message || status?.reason;
  const code = status?.code ?? 0;
  const error = new StatusError({
    code: code >= 400 && code < 600 ? code : 400,
    message: explanation ? `${denied}: ${explanation}` : `${denied} without explanation`,
    ...(status?.details && { details: status.details }),
  });
  // A reason that the webhook does not give is none.
  if (status?.reason) error.status.reason = status.reason;
  else delete error.status.reason;
  return error;
}
