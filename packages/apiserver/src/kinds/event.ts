import { type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../field-errors.ts";
import { checkLabelKey } from "../resources/validation/formats.ts";
import { type Strategy } from "../resources/resource-type.ts";

interface Event {
  eventTime?: string | null;
  involvedObject?: { namespace?: string };
  reportingComponent?: string;
  reportingInstance?: string;
  action?: string;
  reason?: string;
  message?: string;
}

/** `pkg/apis/core/validation/events.go`, what holds for both groups. */
function validateEvent(object: UnknownObject, errors: FieldErrors): void {
  const event = object as Event;
  const { namespace } = object.metadata;
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
  if (reporter === "") errors.required("reportingComponent");
  checkLabelKey(reporter, "reportingComponent", errors);
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
