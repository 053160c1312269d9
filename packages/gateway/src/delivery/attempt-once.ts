import { type Clock } from "@spry/kube";
import { Attempt, type ResponseHeaders, type ResponseReceiver } from "../attempt/attempt.ts";
import { type Backend } from "../attempt/backend.ts";
import { isUnsendable, mayRetry } from "../attempt/retry.ts";
import { type DeliveryFailure, type DeliveryRequest, type DeliveryResponse } from "./deliverer.ts";

/** `mayRetry`: no Pod can have seen the request. */
export type Outcome = DeliveryResponse | (DeliveryFailure & { mayRetry: boolean });

/** One attempt whose response is read as a whole, up to a limit. Never rejects. */
export function attemptOnce(
  backend: Backend,
  request: DeliveryRequest,
  leftMs: number,
  clock: Clock,
  onSent?: () => void,
): Promise<Outcome> {
  const { namespace, name, port, method, path, headers, body, maxResponseBytes, signal } = request;
  const { timeoutMs } = request;
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const host = `${name}.${namespace}.svc.cluster.local${port === 80 ? "" : `:${port}`}`;
  const response: DeliveryResponse = {
    status: 0,
    headers: {},
    body: Buffer.alloc(0),
    isCut: false,
  };
  const chunks: Buffer[] = [];
  let length = 0;
  const finish = (outcome: Outcome) => {
    signal?.removeEventListener("abort", abort);
    resolve(outcome);
  };
  const done = () => finish({ ...response, body: Buffer.concat(chunks) });
  const failure = (reason: string, message: string, wasSent = true, again = false) =>
    finish({ reason, message, wasSent, mayRetry: again });
  const receiver: ResponseReceiver = {
    informed() {},
    started(status, received) {
      response.status = status;
      response.headers = plainHeaders(received);
    },
    received(chunk) {
      const room = maxResponseBytes - length;
      if (room > 0) chunks.push(Buffer.from(chunk.subarray(0, room)));
      length += chunk.length;
      if (length <= maxResponseBytes) return true;
      // The rest is not worth waiting for: it may have no end.
      response.isCut = true;
      attempt.abort();
      done();
      return true;
    },
    ended: done,
    upgraded(_status, _headers, socket) {
      socket.destroy();
      failure("UnexpectedUpgrade", "it switched to another protocol");
    },
    failed(failed) {
      const { limitMs, code, message, wasSent } = failed;
      // Earlier attempts have used a part of it.
      if (limitMs !== undefined)
        return failure("Timeout", `no complete response within ${timeoutMs / 1000} s`);
      const again = mayRetry({ ...failed, isBodyReplayable: true, earlierBreaks: 0 });
      const reason = isUnsendable(code)
        ? "Unsendable"
        : wasSent
          ? "UpstreamFailed"
          : "UpstreamUnreachable";
      const why = code === "" ? message : `${message} (${code})`;
      return failure(reason, why, wasSent, again && !wasSent);
    },
  };
  const attempt = new Attempt(
    backend,
    {
      method,
      path,
      headers: ["host", host, ...headers, "content-length", String(body.length)],
      body,
      limits: { totalMs: leftMs },
      onSent,
    },
    receiver,
    clock,
  );
  const abort = () => {
    attempt.abort();
    failure("Cancelled", "it was cancelled", attempt.wasSent);
  };
  signal?.addEventListener("abort", abort, { once: true });
  attempt.send();
  return promise;
}

function plainHeaders(headers: ResponseHeaders): Record<string, string> {
  const plain: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers as Record<string, string | string[]>))
    plain[name.toLowerCase()] = [value].flat().join(", ");
  return plain;
}
