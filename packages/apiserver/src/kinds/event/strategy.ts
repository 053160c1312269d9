import { isDeepStrictEqual } from "node:util";
import { type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { eventToCore } from "../../resources/builtin-conversions.ts";
import { checkLabelKey } from "../../resources/validation/formats.ts";
import { type Strategy } from "../../resources/resource-type.ts";

/** In the names of core/v1; events.k8s.io/v1 has others for some fields. */
interface Event {
  eventTime?: string | null;
  involvedObject?: { namespace?: string };
  reportingComponent?: string;
  reportingInstance?: string;
  action?: string;
  reason?: string;
  message?: string;
  type?: string;
  source?: { component?: string; host?: string };
  firstTimestamp?: string | null;
  lastTimestamp?: string | null;
  count?: number;
  related?: object;
  series?: { count?: number; lastObservedTime?: string | null } | null;
}

const newerGroup = "events.k8s.io/v1";

/** `ValidateEventCreate` and `ValidateEventUpdate` of `pkg/apis/core/validation/events.go`. */
function validateEvent(object: UnknownObject, errors: FieldErrors, old?: UnknownObject): void {
  const isNewer = object.apiVersion === newerGroup;
  const event = coreNames(object);
  validateBasics(event, object.metadata.namespace, isNewer, errors);
  if (!isNewer) return;
  if (old) validateChange(event, coreNames(old), errors);
  else validateNewer(event, errors);
}

/** Of both groups. */
function validateBasics(
  event: Event,
  namespace: string | undefined,
  isNewer: boolean,
  errors: FieldErrors,
): void {
  const regarded = event.involvedObject?.namespace ?? "";
  const path = "involvedObject.namespace";
  const detail = "does not match event.namespace";
  if (!event.eventTime) {
    const isOf = regarded === "" ? namespace === "default" : namespace === regarded;
    if (!isOf) errors.invalid(path, regarded, detail);
    return;
  }
  if (regarded === "" && namespace !== "default" && namespace !== "kube-system")
    errors.invalid(path, regarded, detail);
  const reporter = event.reportingComponent ?? "";
  const reporterPath = isNewer ? "reportingController" : "reportingComponent";
  if (reporter === "") errors.required(reporterPath);
  checkLabelKey(reporter, reporterPath, errors);
  for (const [field, max] of [
    ["reportingInstance", 128],
    ["action", 128],
    ["reason", 128],
    ["message", 1024],
  ] as const) {
    const value = event[field] ?? "";
    if (value === "" && field !== "message") errors.required(field);
    if (value.length > max) errors.invalid(field, "", `can have at most ${max} characters`);
  }
}

/** What events.k8s.io asks of a new one besides. */
function validateNewer(event: Event, errors: FieldErrors): void {
  validateSeries(event, errors);
  if (!event.eventTime) errors.required("eventTime");
  const { type = "", source } = event;
  if (type !== "Normal" && type !== "Warning")
    errors.invalid("type", "", `has invalid value: ${type}`);
  for (const field of ["firstTimestamp", "lastTimestamp", "count"] as const) {
    if (event[field]) errors.invalid(field, "", "needs to be unset");
  }
  if (source?.component || source?.host) errors.invalid("source", "", "needs to be unset");
}

function validateSeries({ series }: Event, errors: FieldErrors): void {
  if (!series) return;
  if ((series.count ?? 0) < 2) errors.invalid("series.count", "", "should be at least 2");
  if (!series.lastObservedTime) errors.required("series.lastObservedTime");
}

/** Of an event of events.k8s.io only the series may change. */
function validateChange(event: Event, old: Event, errors: FieldErrors): void {
  if (!isDeepStrictEqual(event.series, old.series)) validateSeries(event, errors);
  for (const [field, path] of [
    ["involvedObject", "involvedObject"],
    ["reason", "reason"],
    ["message", "message"],
    ["source", "source"],
    ["firstTimestamp", "firstTimestamp"],
    ["lastTimestamp", "lastTimestamp"],
    ["count", "count"],
    ["type", "type"],
    ["eventTime", "eventTime"],
    ["action", "action"],
    ["related", "related"],
    ["reportingComponent", "reportingController"],
    ["reportingInstance", "reportingInstance"],
  ] as const) {
    if (!isDeepStrictEqual(event[field], old[field]))
      errors.invalid(path, event[field], "field is immutable");
  }
}

function coreNames(object: UnknownObject): Event {
  const copy = { ...object };
  if (object.apiVersion === newerGroup) eventToCore(copy);
  return copy as Event;
}

/** `pkg/registry/core/event`. */
export const eventStrategy: Strategy = {
  selectableFields: [
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "reportingController",
    "source",
    "type",
  ],
  validate: validateEvent,
};
