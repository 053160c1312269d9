import { labelKeyProblems, labelValueProblems, type ObjectMeta } from "@spry/kube";
import { type FieldErrors } from "../field-errors.ts";
import { type ResourceType } from "./resource-type.ts";

/** Of the keys and values of an object's annotations together. */
export const maxAnnotationBytes = 256 * 1024;
const maxFinalizers = 100;
const standardFinalizers = new Set([
  "kubernetes",
  "orphan",
  "foregroundDeletion",
  "customresourcecleanup.apiextensions.k8s.io",
]);

const labelPattern = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const serviceNamePattern = /^[a-z](?:[-a-z0-9]*[a-z0-9])?$/;
const subdomainPattern = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

const subdomainDetail =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const labelDetail =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const serviceDetail =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
export const qualifiedNameDetail =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
/** The problems of a name under a rule, in Kubernetes' words; none when it is fine. */
export function nameProblems(
  name: string,
  rule: "subdomain" | "label" | "service" | "path",
): string[] {
  if (rule === "path") {
    if (name === "." || name === "..") return [`may not be '${name}'`];
    return ["/", "%"]
      .filter((char) => name.includes(char))
      .map((char) => `may not contain '${char}'`);
  }
  const problems: string[] = [];
  const max = rule === "subdomain" ? 253 : 63;
  if (name.length > max) problems.push(`must be no more than ${max} characters`);
  if (rule === "subdomain" && !subdomainPattern.test(name)) problems.push(subdomainDetail);
  if (rule === "label" && !labelPattern.test(name)) {
    // A valid subdomain that is not a label contains dots.
    problems.push(subdomainPattern.test(name) ? "must not contain dots" : labelDetail);
  }
  if (rule === "service" && !serviceNamePattern.test(name)) problems.push(serviceDetail);
  return problems;
}

/** `apimachinery/pkg/api/validation/objectmeta.go`. */
export function validateMetadata(
  type: ResourceType,
  metadata: ObjectMeta,
  errors: FieldErrors,
  old: ObjectMeta | undefined,
): void {
  if (!old) validateNames(type, metadata, errors);
  else {
    // Kubernetes looks at the metadata of an update twice: for all kinds, and for this one.
    validateUpdate(metadata, old, errors);
    validateUpdate(metadata, old, errors);
  }
  validateLabels(metadata.labels, "metadata.labels", errors);
  validateAnnotations(metadata.annotations, errors);
  validateOwners(metadata, errors);
  if ((metadata.finalizers?.length ?? 0) > maxFinalizers) {
    errors.tooMany("metadata.finalizers", metadata.finalizers?.length ?? 0, maxFinalizers);
  }
  for (const [index, finalizer] of (metadata.finalizers ?? []).entries()) {
    for (const problem of labelKeyProblems(finalizer)) {
      errors.invalid("metadata.finalizers", finalizer, problem);
    }
    if (!type.custom && !finalizer.includes("/") && !standardFinalizers.has(finalizer)) {
      errors.invalid(
        `metadata.finalizers[${index}]`,
        finalizer,
        "name is neither a standard finalizer name nor is it fully qualified",
      );
    }
  }
}

function validateUpdate(metadata: ObjectMeta, old: ObjectMeta, errors: FieldErrors): void {
  const before = new Set(old.finalizers);
  const added = (metadata.finalizers ?? []).filter((each) => !before.has(each));
  if (old.deletionTimestamp && added.length > 0) {
    errors.forbidden(
      "metadata.finalizers",
      `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((each) => JSON.stringify(each)).join(", ")}}`,
    );
  }
  if (metadata.uid && metadata.uid !== old.uid) {
    errors.invalid("metadata.uid", metadata.uid, "field is immutable");
  }
}

function validateNames(type: ResourceType, metadata: ObjectMeta, errors: FieldErrors): void {
  const rule = type.strategy.nameRule ?? "subdomain";
  if (metadata.generateName) {
    const base = metadata.generateName.replace(/-$/, "a");
    for (const problem of nameProblems(base, rule)) {
      errors.invalid("metadata.generateName", metadata.generateName, problem);
    }
  }
  if (!metadata.name) errors.required("metadata.name", "name or generateName is required");
  else {
    for (const problem of nameProblems(metadata.name, rule)) {
      errors.invalid("metadata.name", metadata.name, problem);
    }
  }
}

export function validateLabels(
  labels: Record<string, string> | undefined,
  path: string,
  errors: FieldErrors,
): void {
  for (const [key, value] of sortedEntries(labels)) {
    for (const problem of labelKeyProblems(key)) errors.invalid(path, key, problem);
    if (typeof value !== "string") continue;
    for (const problem of labelValueProblems(value)) errors.invalid(path, value, problem);
  }
}

function validateAnnotations(
  annotations: Record<string, string> | undefined,
  errors: FieldErrors,
): void {
  let size = 0;
  for (const [key, value] of sortedEntries(annotations)) {
    for (const problem of labelKeyProblems(key.toLowerCase())) {
      errors.invalid("metadata.annotations", key, problem);
    }
    size += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (size > maxAnnotationBytes) errors.tooLong("metadata.annotations", maxAnnotationBytes);
}

function sortedEntries(map: Record<string, string> | undefined): [string, string][] {
  return Object.entries(map ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
}

function validateOwners(metadata: ObjectMeta, errors: FieldErrors): void {
  let controllers = 0;
  const path = "metadata.ownerReferences";
  for (const owner of metadata.ownerReferences ?? []) {
    for (const field of ["apiVersion", "kind", "name", "uid"] as const) {
      if (!owner[field]) {
        errors.invalid(
          `${path}.${field}`,
          owner[field] ?? "",
          field === "apiVersion" ? "version must not be empty" : "must not be empty",
        );
      }
    }
    if (owner.controller && ++controllers > 1) {
      errors.invalid(
        "metadata.ownerReferences",
        metadata.ownerReferences,
        "Only one reference can have Controller set to true",
      );
    }
  }
}
