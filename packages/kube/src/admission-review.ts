import { type Status, type StatusCause } from "./errors.ts";

/** `admission.k8s.io/v1 AdmissionReview`, as far as webhooks of this platform need it. */
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
  userInfo?: { username?: string };
  name?: string;
  namespace?: string;
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

export interface PatchOperation {
  op: "add" | "replace";
  path: string;
  value: unknown;
}

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

/** An object of the largest size, twice (old and new), with room for the envelope. */
const maxBodyLength = 8 * 1024 * 1024;

/** Answers an AdmissionReview v1 with an AdmissionReview v1; what is none is refused with a 4xx. */
export async function answerReview(
  request: Request,
  review: (request: AdmissionRequest) => AdmissionResponse | Promise<AdmissionResponse>,
): Promise<Response> {
  if (request.method !== "POST") return webhookProblem(405, "a review must be sent with POST");
  const body = await readReviewBody(request, maxBodyLength);
  if (body === undefined) return webhookProblem(413, "the request body is too large");
  const asked = parseReview(body);
  if (!asked)
    return webhookProblem(400, "the request body is not an AdmissionReview of admission.k8s.io/v1");
  const response = { uid: asked.uid, ...(await review(asked)) };
  const kind = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview" };
  return Response.json({ ...kind, response });
}

/** Undefined if it is too long, without reading on. */
export async function readReviewBody(
  request: Request,
  maxLength: number,
): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body ?? []) {
    length += chunk.length;
    if (length > maxLength) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parseReview(body: string): AdmissionRequest | undefined {
  try {
    const { apiVersion, kind, request } = JSON.parse(body) as AdmissionReview;
    const known = apiVersion === "admission.k8s.io/v1" && kind === "AdmissionReview";
    return known && typeof request?.uid === "string" && isMap(request.kind) ? request : undefined;
  } catch {
    return undefined;
  }
}

function isMap(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function webhookProblem(status: number, message: string): Response {
  return Response.json({ message }, { status });
}
