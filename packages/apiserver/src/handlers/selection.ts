import {
  type FieldRequirement,
  type LabelRequirement,
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
} from "@spry/kube";
import { type ResourceRequest } from "../request.ts";
import { badRequest } from "../errors.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { type StoredObject } from "../store/stored-object.ts";

/** Which objects of a collection a request is about. */
export interface Selection {
  /** True when every object of the namespace is selected, so that none needs to be parsed. */
  all: boolean;
  matches(stored: StoredObject): boolean;
}

export function selectionOf({ type, query, namespace, name }: ResourceRequest): Selection {
  const labels = parseLabelSelector(query.get("labelSelector") ?? "");
  const fields = parseFieldSelector(query.get("fieldSelector") ?? "");
  if (name) fields.push({ field: "metadata.name", operator: "=", value: name });
  for (const { field } of fields) checkField(type, field);
  const [nameFields, otherFields] = partition(fields);
  const all = labels.length === 0 && fields.length === 0;
  return {
    all,
    matches(stored) {
      if (namespace && stored.namespace !== namespace) return false;
      if (all) return true;
      if (!matchesFields(nameFields, (field) => nameField(stored, field))) return false;
      return matchesParsed(stored, labels, otherFields);
    },
  };
}

function matchesParsed(
  stored: StoredObject,
  labels: LabelRequirement[],
  fields: FieldRequirement[],
): boolean {
  if (labels.length === 0 && fields.length === 0) return true;
  const { object } = stored;
  return (
    matchesLabels(labels, object.metadata.labels) &&
    matchesFields(fields, (field) => fieldText(object, field))
  );
}

function nameField(stored: StoredObject, field: string): string {
  return field === "metadata.name" ? stored.name : stored.namespace;
}

function isNameField(field: string): boolean {
  return field === "metadata.name" || field === "metadata.namespace";
}

function partition(fields: FieldRequirement[]): [FieldRequirement[], FieldRequirement[]] {
  return [
    fields.filter(({ field }) => isNameField(field)),
    fields.filter(({ field }) => !isNameField(field)),
  ];
}

function checkField(type: ResourceType, field: string): void {
  if (isNameField(field) || type.strategy.selectableFields?.includes(field)) return;
  if (type.strategy.selectableFields) throw badRequest(`field label not supported: ${field}`);
  throw badRequest(
    `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
  );
}

/** Fields whose name in a selector is not their path. */
const aliases = new Map([
  ["source", "source.component"],
  ["reportingController", "reportingComponent"],
]);

function fieldText(object: unknown, field: string): string {
  let value = object;
  for (const part of (aliases.get(field) ?? field).split(".")) {
    if (typeof value !== "object" || value === null) return "";
    value = (value as Record<string, unknown>)[part];
  }
  if (value === undefined || value === null) {
    // Numbers and booleans that are left out of JSON are zero.
    return zeroFields.get(field) ?? "";
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const zeroFields = new Map([
  ["spec.hostNetwork", "false"],
  ["spec.unschedulable", "false"],
  ["status.successful", "0"],
  ["status.succeeded", "0"],
  ["status.replicas", "0"],
]);
