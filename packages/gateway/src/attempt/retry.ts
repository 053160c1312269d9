/** How an attempt to have a request handled by a backend ended, as far as it matters for a retry. */
export interface FailedAttempt {
  /** Of the error: undici's `UND_ERR_…` or the system's. */
  code: string;
  method: string;
  /** Whether the request was written to a connection at all. */
  wasSent: boolean;
  sinceSentMs: number;
  /** Whether a byte of a response has been received. */
  hasResponded: boolean;
  /** Whether the Pod is no longer among its destination's addresses. */
  isRetired: boolean;
  isBodyReplayable: boolean;
  /** Connections of this request that broke before this one, by another end than that of this Pod's process (`Breaks`). */
  earlierBreaks: number;
}

/** A request whose connection broke is retried once: one that crashes Pods must not crash them all. */
const maxBreaks = 1;
/**
 * A Pod that ends closes its idle connections; a request that met such a close knows within a round
 * trip. Later than this the Pod may well have been killed in the middle of handling it.
 */
const staleWithinMs = 1_000;

/** Methods that may be handled twice (RFC 9110 section 9.2.2). */
const idempotent = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"]);
/** Errors of a connection that was open and ended; all others concern the request or the response. */
const brokenConnection = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);
/** The request cannot be sent at all, to no backend. */
const unsendable = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED"]);

/** Whether a connection was open and has ended, with the Pod's process perhaps. */
export const isBroken = ({ code, wasSent }: Pick<FailedAttempt, "code" | "wasSent">): boolean =>
  wasSent && brokenConnection.has(code);

export function isUnsendable(code: string): boolean {
  return unsendable.has(code);
}

/**
 * Whether a request may be retried because nothing can be done twice by that:
 *
 * - the connection was never made: always;
 * - the connection broke: an idempotent request, or any request to a Pod that was being removed, if it broke at once.
 *
 * The gateway cannot see whether a handler has received it: a Pod that dies closes connections in the same way, whether or not
 * it has read the request. All other requests get a 502 that says so, and the client decides whether to retry.
 */
export function mayRetry(attempt: FailedAttempt): boolean {
  if (attempt.hasResponded || !attempt.isBodyReplayable || isUnsendable(attempt.code)) return false;
  if (!attempt.wasSent) return true;
  if (!brokenConnection.has(attempt.code) || attempt.earlierBreaks >= maxBreaks) return false;
  if (attempt.isRetired) return attempt.sinceSentMs < staleWithinMs;
  return idempotent.has(attempt.method);
}
