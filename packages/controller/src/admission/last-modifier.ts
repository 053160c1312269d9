import { annotations, defaultFunction, type Function, recordedSpec } from "@spry/function";
import { deepEqual } from "@spry/kube";
import { type AdmissionRequest, type PatchOperation } from "@spry/kube";

const maxLength = 253;
const path = `/metadata/annotations/${annotations.lastModifier.replaceAll("/", "~1")}`;

/**
 * Keeps the annotation that names the user whose request changed the spec last, for the Function's history. It is decided by the
 * server alone: a request that changes the spec sets it, all others get back what is stored, whatever they say of it. So a tool
 * that applies the same manifest again, with or without the annotation, changes nothing, and no request can name another user.
 * Only admission knows the user: `managedFields` has the name that a client gives itself.
 */
export function lastModifierPatch(request: AdmissionRequest, object: Function): PatchOperation[] {
  const { userInfo, oldObject } = request;
  const old = oldObject as Partial<Function> | undefined;
  // Server-side apply leaves null of a map whose last key it takes away.
  const present = object.metadata.annotations ?? undefined;
  // The schema refuses it.
  if (present !== undefined && !isMap(present)) return [];
  const isSame = old?.spec !== undefined && isSameRequest(old as Function, object);
  const value = isSame
    ? old.metadata?.annotations?.[annotations.lastModifier]
    : printable(userInfo?.username);
  const before = present?.[annotations.lastModifier];
  if (before === value) return [];
  if (value === undefined) return [{ op: "remove", path }];
  if (!present || Object.keys(present).length === 0)
    return [
      { op: "add", path: "/metadata/annotations", value: { [annotations.lastModifier]: value } },
    ];
  return [{ op: before === undefined ? "add" : "replace", path, value }];
}

/** What leads to another revision of the history: the spec without its scale, and a demand for a build. */
function isSameRequest(old: Function, object: Function): boolean {
  const demandOf = ({ metadata }: Function) => metadata.annotations?.[annotations.rebuild];
  return (
    demandOf(old) === demandOf(object) &&
    deepEqual(recordedSpec(old.spec), recordedSpec(defaultFunction(object).spec))
  );
}

/** A user's name is whatever a certificate or an identity provider says. */
function printable(name: string | undefined): string | undefined {
  return name?.replace(/\p{C}/gu, "?").slice(0, maxLength) || undefined;
}

function isMap(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
