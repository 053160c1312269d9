import { type Strategy } from "../resources/resource-type.ts";

/** Fields that the type of Events writes out even when nothing is said. */
const blank = {
  source: {},
  firstTimestamp: null,
  lastTimestamp: null,
  eventTime: null,
  reportingComponent: "",
  reportingInstance: "",
};

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
  prepare(object) {
    for (const [key, value] of Object.entries(blank)) object[key] ??= value;
  },
};
