import { type Status, type StatusCause } from "@spry/kube";

/** `admission.k8s.io/v1 AdmissionReview`, as far as Functions need it. */
export interface AdmissionReview {
  apiVersion: string;
  kind: string;
  request?: AdmissionRequest;
}

export interface AdmissionRequest {
  uid: string;
  operation: "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
  kind: { group: string; version: string; kind: string };
  subResource?: string;
  name?: string;
  namespace?: string;
  /** Who sent the request; of an impersonated one, the user it was sent as. */
  userInfo?: { username?: string };
  object?: unknown;
  oldObject?: unknown;
}

export interface AdmissionResponse {
  allowed: boolean;
  warnings?: string[];
  patchType?: "JSONPatch";
  /** base64 */
  patch?: string;
  status?: Partial<Status>;
}

export type PatchOperation =
  | { op: "add" | "replace"; path: string; value: unknown }
  | { op: "remove"; path: string };

export function allow(warnings: string[] = []): AdmissionResponse {
  return { allowed: true, ...(warnings.length > 0 ? { warnings } : {}) };
}

export function allowPatched(operations: readonly PatchOperation[]): AdmissionResponse {
  if (operations.length === 0) return allow();
  const patch = Buffer.from(JSON.stringify(operations)).toString("base64");
  return { allowed: true, patchType: "JSONPatch", patch };
}

/** A refusal as the API server itself would put it: 422, every field with its cause. */
export function refuse(request: AdmissionRequest, causes: StatusCause[]): AdmissionResponse {
  const { kind, name = "" } = request;
  const problems = causes.map(({ field, reason, message }) => {
    const what = reason === "FieldValueRequired" ? "Required value" : "Invalid value";
    return `${field}: ${what}: ${message}`;
  });
  const kindName = [kind.kind, kind.group].filter(Boolean).join(".");
  const list = problems.length === 1 ? problems[0] : `[${problems.join(", ")}]`;
  return {
    allowed: false,
    status: {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      code: 422,
      reason: "Invalid",
      message: `${kindName} ${JSON.stringify(name)} is invalid: ${list}`,
      details: { name, group: kind.group, kind: kind.kind, causes },
    },
  };
}
