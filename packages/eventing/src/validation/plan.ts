import { type Subscription } from "@spry/function";
import { type ConsumerOptions } from "@spry/queue";
import { cleanType, fullName, hasPrefix } from "../events/names.ts";
import { subjectOf } from "../events/message.ts";

/** What a Subscription that can be served comes to. */
export interface Plan {
  sink: Sink;
  consumer: ConsumerOptions;
  maxInFlight: number;
  maxAttempts: number;
  backoffMs: number;
  maxBackoffMs: number;
  jitter: number;
  timeoutMs: number;
  deadlineMs: number | undefined;
  keepsDeadLetters: boolean;
}

/** A port of a Service, and a path there. */
export interface Sink {
  namespace: string;
  name: string;
  port: number;
  path: string;
}

export const defaultMaxInFlight = 10;

/** Of a Subscription without problems, and whose Service exists. */
export function planOf({ spec }: Subscription, sink: Sink): Plan {
  const { delivery = {}, config } = spec;
  const { maxAttempts = 100, backoffSeconds = 1, maxBackoffSeconds = 60 } = delivery;
  const { jitterPercent = 20, timeoutSeconds = 60, deadlineSeconds, deadLetters } = delivery;
  const deadlineMs = deadlineSeconds === undefined ? undefined : deadlineSeconds * 1_000;
  const keepsDeadLetters = deadLetters !== "Discard";
  const own = deadlineMs !== undefined && keepsDeadLetters ? { deadlineMs } : {};
  return {
    sink,
    consumer: { ...consumerOptions(spec), ...own, owner: sink.namespace },
    maxInFlight: Number(config?.["maxInFlightMessages"] ?? defaultMaxInFlight),
    maxAttempts,
    backoffMs: backoffSeconds * 1_000,
    maxBackoffMs: maxBackoffSeconds * 1_000,
    jitter: jitterPercent / 100,
    timeoutMs: timeoutSeconds * 1_000,
    deadlineMs,
    keepsDeadLetters,
  };
}

/**
 * `standard`: names as the original has them. `exact`: a type with the prefix is a name; another one is compared with
 * the event's own type, and the source with its own, if there is one.
 */
function consumerOptions(spec: Subscription["spec"]): ConsumerOptions {
  const { source = "", filters = [] } = spec;
  const types = [...new Set(spec.types)];
  const orderBy = spec.delivery?.orderBy;
  const own = filters as NonNullable<ConsumerOptions["filter"]>;
  if (spec.typeMatching !== "exact") {
    const subjects = types.map((type) => subjectOf(fullName(source, type)));
    return { subjects, filter: own.length > 0 ? own : undefined, orderBy };
  }
  const named = types.filter(hasPrefix);
  const plain = types.filter((type) => !hasPrefix(type));
  if (plain.length === 0) {
    const subjects = named.map((type) => subjectOf(cleanType(type)));
    return { subjects, filter: own.length > 0 ? own : undefined, orderBy };
  }
  const from = source === "" ? {} : { source };
  const isOne = {
    any: plain.map((type) => ({ exact: { type, ...from } })),
  };
  // Events of any source have as many names as there are sources.
  if (source === "" || named.length > 0)
    return {
      subjects: "all",
      filter: [{ any: [...isOne.any, ...named.map((type) => ({ exact: { type } }))] }, ...own],
      orderBy,
    };
  const subjects = plain.map((type) => subjectOf(fullName(source, type)));
  return { subjects, filter: [isOne, ...own], orderBy };
}

/** Of the original's status. */
export function typesOf({ spec }: Subscription): { originalType: string; cleanType: string }[] {
  const isExact = spec.typeMatching === "exact";
  return [...new Set(spec.types)].map((originalType) => ({
    originalType,
    cleanType: isExact ? originalType : cleanType(originalType),
  }));
}
