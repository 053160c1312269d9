import { type UnknownObject } from "@spry/kube";
import { type ResourceRequest } from "../request.ts";
import { groupVersionOf, type ResourceType } from "../resources/resource-type.ts";

export type Operation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";

/** One request as admission sees it. */
export interface AdmissionAttributes {
  request: ResourceRequest;
  operation: Operation;
  /** Absent for deletions. */
  object: UnknownObject | undefined;
  /** Absent for creations. */
  old: UnknownObject | undefined;
  /** `DeleteOptions` as they were sent. */
  deletion?: object | undefined;
}

/** `k8s.io/api/admission/v1 AdmissionRequest`, without its uid. */
export type AdmissionRequest = ReturnType<typeof admissionRequest>;

const verbs = { CREATE: "Create", UPDATE: "Update", DELETE: "Delete", CONNECT: "Connect" };

function optionsOf({ request, operation, deletion }: AdmissionAttributes): Record<string, unknown> {
  const { query, dryRun } = request;
  const fieldManager = query.get("fieldManager");
  const fieldValidation = query.get("fieldValidation");
  return {
    ...deletion,
    kind: `${verbs[operation]}Options`,
    apiVersion: "meta.k8s.io/v1",
    ...(dryRun && { dryRun: ["All"] }),
    ...(fieldManager && { fieldManager }),
    ...(fieldValidation && { fieldValidation }),
  };
}

/** A request as webhooks and policies see it; `type` is the version in which they want it. */
export function admissionRequest(attributes: AdmissionAttributes, type: ResourceType) {
  const { request, operation, object, old } = attributes;
  const { subresource, user } = request;
  const namespace = namespaceOf(attributes);
  return {
    kind: kindOf(type),
    resource: resourceOf(type),
    ...(subresource && { subResource: subresource }),
    requestKind: kindOf(request.type),
    requestResource: resourceOf(request.type),
    ...(subresource && { requestSubResource: subresource }),
    ...(nameOf(attributes) && { name: nameOf(attributes) }),
    ...(namespace && { namespace }),
    operation,
    userInfo: { username: user.name, groups: user.groups, ...(user.uid && { uid: user.uid }) },
    object: object ?? null,
    oldObject: old ?? null,
    dryRun: request.dryRun,
    options: optionsOf(attributes),
  };
}

export function nameOf({ request, object }: AdmissionAttributes): string {
  return request.name || (object?.metadata.name ?? "");
}

/** As in Kubernetes, a Namespace counts as being in itself. */
export function namespaceOf(attributes: AdmissionAttributes): string {
  const { request } = attributes;
  return isNamespace(request.type) ? nameOf(attributes) : request.namespace;
}

export function isNamespace(type: ResourceType): boolean {
  return type.collection === "/namespaces";
}

function kindOf({ group, version, kind }: ResourceType) {
  return { group, version, kind };
}

function resourceOf({ group, version, plural }: ResourceType) {
  return { group, version, resource: plural };
}

/** `apps/v1, Kind=Deployment`, as Go prints a GroupVersionKind. */
export function printedKind(type: ResourceType): string {
  return `${groupVersionOf(type)}, Kind=${type.kind}`;
}
