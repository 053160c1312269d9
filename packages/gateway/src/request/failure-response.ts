import { type AttemptFailure } from "../attempt/attempt.ts";
import { maxHeadBytes } from "../attempt/backend.ts";
import { isUnsendable } from "../attempt/retry.ts";
import {
  backendFailed,
  backendHeadTooLarge,
  backendTimeout,
  backendUnreachable,
  type ErrorResponse,
  malformedRequest,
} from "../http/error-response.ts";
import { type RequestSettings } from "./passage.ts";

/** What a client gets for an attempt that failed and may not be retried; `name` as in `Function default/hello`. */
export function failureResponse(
  { code, message, wasSent, limitMs }: AttemptFailure,
  name: string,
  { upstreamTimeoutMs }: Pick<RequestSettings, "upstreamTimeoutMs">,
): ErrorResponse {
  if (isUnsendable(code)) return malformedRequest(message);
  if (limitMs !== undefined) return backendTimeout(name, limitMs);
  if (code === "UND_ERR_HEADERS_TIMEOUT") return backendTimeout(name, upstreamTimeoutMs);
  if (code === "UND_ERR_HEADERS_OVERFLOW") return backendHeadTooLarge(name, maxHeadBytes);
  return wasSent ? backendFailed(name) : backendUnreachable(name);
}
