import { type Function, type Revision, type Route as RouteObject } from "@spry/function";
import { getCondition, type ObjectKey } from "@spry/kube";
import { type AttemptLimits } from "../attempt/attempt.ts";
import { type Absence, type DestinationPolicy } from "../activation/destination.ts";
import { explain } from "../activation/explanation.ts";
import { notReady } from "../http/error-response.ts";

export interface PolicySettings {
  /** How long a request waits for what has failed, or has never been ready. */
  readyWaitMs: number;
  /** How long a request waits for a Pod, at most. */
  maxWaitMs: number;
}

/** `config-defaults` of Knative, for a Revision that the gateway has not seen yet. */
const defaultTimeoutSeconds = 300;
const unreachablePatienceMs = 1_000;
const missingPatienceMs = 1_000;
const maxMessageLength = 300;

/**
 * How requests wait for a Revision, and what they may expect of it (Knative Serving API, RevisionSpec): at zero they wait as
 * long as they may take, or until it has failed.
 */
export function revisionPolicy(
  key: ObjectKey,
  read: () => Revision | undefined,
  settings: PolicySettings,
): DestinationPolicy {
  const name = `Revision ${key}`;
  const { containerConcurrency = 0 } = read()?.spec ?? {};
  const timeoutMs = timeoutMsOf(read());
  const maxWaitMs = Math.min(timeoutMs, settings.maxWaitMs);
  return {
    name,
    concurrency: containerConcurrency > 0 ? containerConcurrency : undefined,
    isExact: containerConcurrency > 0,
    maxWaitMs,
    limits: limitsOf(read(), timeoutMs),
    // Its address may be published before its socket is open.
    unreachablePatienceMs: Math.max(
      unreachablePatienceMs,
      Math.min(maxWaitMs, settings.readyWaitMs),
    ),
    absence: () => revisionAbsence(name, read(), maxWaitMs, settings.readyWaitMs),
  };
}

/** How long a response may take to begin. */
export function timeoutMsOf(revision: Revision | undefined): number {
  return (revision?.spec.timeoutSeconds || defaultTimeoutSeconds) * 1000;
}

/** Knative's `timeoutSeconds` limits the time until the response begins, not that of its body. */
function limitsOf(revision: Revision | undefined, timeoutMs: number): AttemptLimits {
  const { responseStartTimeoutSeconds = 0, idleTimeoutSeconds = 0 } = revision?.spec ?? {};
  const starts = [responseStartTimeoutSeconds, idleTimeoutSeconds].filter((limit) => limit > 0);
  return {
    startMs: Math.min(timeoutMs, ...starts.map((limit) => limit * 1000)),
    idleMs: idleTimeoutSeconds > 0 ? idleTimeoutSeconds * 1000 : undefined,
  };
}

function revisionAbsence(
  name: string,
  revision: Revision | undefined,
  maxWaitMs: number,
  readyWaitMs: number,
): Absence {
  if (!revision) {
    const otherwise = notReady("RevisionMissing", `${name} does not exist`);
    return { patienceMs: Math.min(maxWaitMs, missingPatienceMs), otherwise };
  }
  const ready = getCondition(revision.status?.conditions, "Ready");
  const hasFailed = ready?.status === "False";
  const waited = `${name} has no Pod that is ready`;
  const message = ready?.message ? `${name} is not ready: ${firstLine(ready.message)}` : waited;
  return {
    // It may have failed before, and be about to recover.
    patienceMs: hasFailed ? Math.min(maxWaitMs, readyWaitMs) : maxWaitMs,
    otherwise: notReady(
      (hasFailed && ready.reason) || "NoReadyEndpoint",
      hasFailed ? `${name} is not ready: the reason is in its conditions` : waited,
      hasFailed ? message : waited,
    ),
  };
}

/** For a Route without traffic yet: that of a Function is explained by the Function's conditions. */
export function pendingPolicy(
  key: ObjectKey,
  read: () => { route: RouteObject | undefined; fn: Function | undefined },
  { readyWaitMs }: PolicySettings,
): DestinationPolicy {
  const absence = (): Absence => {
    const { route, fn } = read();
    if (fn) {
      const { reason, message, state } = explain(key, fn, true);
      const { message: localMessage } = explain(key, fn, false);
      const patienceMs = state === "failed" ? 0 : readyWaitMs;
      return { patienceMs, otherwise: notReady(reason, message, localMessage) };
    }
    const ready = getCondition(route?.status?.conditions, "Ready");
    const message = `Route ${key} has no Revision that is ready`;
    const why = ready?.message ? `${message}: ${firstLine(ready.message)}` : message;
    return {
      patienceMs: readyWaitMs,
      otherwise: notReady(ready?.reason ?? "NoTraffic", message, why),
    };
  };
  return { name: `Route ${key}`, concurrency: undefined, unreachablePatienceMs, absence };
}

function firstLine(message: string): string {
  return message.slice(0, maxMessageLength).split("\n")[0] ?? "";
}
