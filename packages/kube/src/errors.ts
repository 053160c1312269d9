/** One problem with one field, as Kubernetes reports it in `Status.details.causes`. */
export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

/** `meta/v1 Status`: how the Kubernetes API says that something did not work. */
export interface Status {
  kind: "Status";
  apiVersion: "v1";
  metadata: Record<string, unknown>;
  status: "Success" | "Failure";
  message?: string;
  reason?: string;
  details?: {
    name?: string;
    group?: string;
    kind?: string;
    uid?: string;
    causes?: StatusCause[];
    retryAfterSeconds?: number;
  };
  code: number;
}

const reasonOfCode: Record<number, string> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  406: "NotAcceptable",
  409: "Conflict",
  410: "Expired",
  413: "RequestEntityTooLarge",
  415: "UnsupportedMediaType",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/** A failed API call, on both sides of the wire: the server throws it, the client rethrows it. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: Status;

  constructor(status: Partial<Status> & { code: number; message: string }, options?: ErrorOptions) {
    super(status.message, options);
    this.status = {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      reason: reasonOfCode[status.code] ?? "Unknown",
      ...status,
    };
  }

  get code(): number {
    return this.status.code;
  }
  get reason(): string {
    return this.status.reason ?? "";
  }
}

function hasReason(error: unknown, ...reasons: string[]): boolean {
  return error instanceof StatusError && reasons.includes(error.reason);
}

export const isNotFound = (error: unknown): boolean => hasReason(error, "NotFound");
export const isConflict = (error: unknown): boolean => hasReason(error, "Conflict");
export const isAlreadyExists = (error: unknown): boolean => hasReason(error, "AlreadyExists");
export const isInvalid = (error: unknown): boolean => hasReason(error, "Invalid");
/** Also how webhooks of Knative refuse an object. */
export const isBadRequest = (error: unknown): boolean => hasReason(error, "BadRequest");
export const isForbidden = (error: unknown): boolean => hasReason(error, "Forbidden");
/** A creation in a Namespace that is being deleted: all that follow will fail too. */
export const isNamespaceTerminating = (error: unknown): boolean =>
  error instanceof StatusError &&
  (error.status.details?.causes ?? []).some(({ reason }) => reason === "NamespaceTerminating");
/** The server no longer has the asked-for resourceVersion: list again. */
export const isGone = (error: unknown): boolean => hasReason(error, "Expired", "Gone");

/** The message of an error with those of its causes, in a readable form: `a: b: c`. */
export function messageOf(error: unknown): string {
  const parts: string[] = [];
  for (let at = error, depth = 0; at != null && depth < 8; depth++) {
    const text = at instanceof Error ? at.message : String(at);
    if (text && !parts.some((part) => part.includes(text))) parts.push(text);
    at = at instanceof Error ? at.cause : undefined;
  }
  return parts.join(": ");
}
