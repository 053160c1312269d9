import { type DeliveryResult } from "@spry/gateway";
import { type NewMessage } from "@spry/queue";
import { type Call, callbackSubject, type CallOptions, type CallResponse } from "./call.ts";
import { type Wait } from "./function-looks.ts";

const dayMs = 86_400_000;

/** When a call ends that has not reached its Function, in milliseconds since the epoch. */
export function deadlineOf({ deadlineAt, schedule, attempts, ...call }: Call): number {
  // The deadline of a run is for its start.
  const hasOwn = deadlineAt !== undefined && !(schedule && attempts > 0);
  if (hasOwn) return Date.parse(deadlineAt);
  return Date.parse(call.notBefore ?? call.acceptedAt) + dayMs;
}

/** Why a call ends at its deadline. */
export function overdue(call: Call, last?: Wait): Wait {
  const seconds = Math.round(
    (deadlineOf(call) - Date.parse(call.notBefore ?? call.acceptedAt)) / 1_000,
  );
  const reason = call.attempts === 0 ? "NeverReached" : "DeadlineExceeded";
  const did = call.attempts === 0 ? "it could not be sent" : "it was not handled";
  const known: Wait | undefined = last ?? lastOf(call);
  const sentence = (end: string | undefined) =>
    `${did} within ${seconds} s${end === undefined ? "" : `; at last: ${end}`}`;
  return {
    reason,
    message: sentence(known && `${known.reason}: ${known.message}`),
    publicMessage: sentence(known && `${known.reason}: ${known.publicMessage ?? known.message}`),
  };
}

function lastOf({ reason, error, publicError = error }: Call): Wait | undefined {
  if (reason === undefined || error === undefined || publicError === undefined) return undefined;
  const without = (text: string) => text.replace(`${reason}: `, "");
  return { reason, message: without(error), publicMessage: without(publicError) };
}

/** The part of a failed call's outcome that is stored: why it got no response. */
export function errorOf({ reason, message, publicMessage }: Wait) {
  return {
    reason,
    error: `${reason}: ${message}`,
    ...(publicMessage === undefined || publicMessage === message
      ? {}
      : { publicError: `${reason}: ${publicMessage}` }),
  };
}

/** A call as it is between two attempts: nothing of the last one's failure is left, nor of a response. */
export function withoutOutcome(call: Call): Call {
  const {
    response: _response,
    reason: _reason,
    error: _error,
    publicError: _public,
    ...rest
  } = call;
  return rest;
}

/** No response, or one that says that the request was not handled, or failed. */
export function mayBeRetried(result: DeliveryResult): boolean {
  return !("status" in result) || result.status >= 500 || result.status === 429;
}

export function outcomeOf(result: DeliveryResult): Pick<Call, "response" | "error" | "reason"> {
  if (!("status" in result)) return errorOf(result);
  const { status, headers, body, isCut } = result;
  const text = body.toString("utf8");
  const isText = Buffer.from(text).equals(body);
  const kept: CallResponse = {
    status,
    headers: Object.fromEntries(
      Object.entries(headers).filter(([name]) => /^(?:content-|x-|location$|ce-)/.test(name)),
    ),
    ...(isText ? { body: text } : { bodyBase64: body.toString("base64") }),
    ...(isCut ? { isCut } : {}),
  };
  return { response: kept };
}

/** The messages that report a call's end to the URLs that its client has named; as OpenFaaS sends them. */
export function callbacksOf(
  call: Call,
  { namespace, uid }: { namespace: string; uid: string | undefined },
  { callbackUrl, onSuccess, onFailure, isOfMachine = false }: CallOptions,
  result: DeliveryResult | Wait,
): NewMessage[] {
  const urls = [callbackUrl, call.state === "succeeded" ? onSuccess : onFailure];
  const status = "status" in result ? result.status : 502;
  const begin = Date.parse(call.startedAt ?? call.endedAt ?? "");
  const seconds = (Date.parse(call.endedAt ?? "") - begin) / 1_000;
  const message = (failed: Wait) => failed.publicMessage ?? failed.message;
  const headers = {
    "content-type":
      ("status" in result ? result.headers["content-type"] : undefined) ?? "text/plain",
    "x-call-id": `${namespace}.${call.id}`,
    "x-function-name": call.function,
    "x-function-status": String(status),
    "x-duration-seconds": String(seconds),
    "user-agent": "spry-eventing",
  };
  return urls.flatMap((url, index) =>
    url === undefined
      ? []
      : {
          subject: callbackSubject,
          key: `callback\n${call.id}\n${index}`,
          attributes: {
            url,
            namespace,
            ...(uid === undefined ? {} : { uid }),
            headers: JSON.stringify(headers),
            ofmachine: String(isOfMachine),
          },
          body: "status" in result ? result.body : Buffer.from(message(result)),
        },
  );
}
