import { copyOf } from "../json-copy.ts";
import { StatusError, timestamp, type UnknownObject } from "@spry/kube";
import { applyObject, untypable, type Writer } from "../apply/managed-fields.ts";
import { fieldsOf } from "../apply/typed-value.ts";
import { type FieldSet } from "../apply/field-set.ts";
import { type Engine, type ResourceRequest } from "../engine.ts";
import { badRequest, notFound } from "../errors.ts";
import { FieldErrors } from "../field-errors.ts";
import { parseDocument, parseObject } from "../http/request-body.ts";
import { patched, type PatchKind } from "../patch/patch.ts";
import { groupVersionOf } from "../resources/resource-type.ts";
import { dropUnknownFields } from "../schema/field-validation.ts";
import { createObject, placeOf, updateObject } from "./write.ts";

/** The object after a patch; `created` when server-side apply made it. */
export interface PatchOutcome {
  object: UnknownObject;
  created: boolean;
}

export async function patchObject(
  engine: Engine,
  request: ResourceRequest,
  kind: PatchKind,
  body: string,
  check: (object: UnknownObject) => void,
): Promise<PatchOutcome> {
  if (kind === "apply") return applyPatch(engine, request, body);
  if (request.query.has("force")) throw forceOnlyForApply(request);
  const patch = parseDocument(body, "application/json");
  const modify = (current: UnknownObject) => {
    const next = patched(current, patch, kind, request.type);
    check(next);
    return next;
  };
  const object = await updateObject(engine, request, { modify, subresource: request.subresource });
  return { object, created: false };
}

async function applyPatch(
  engine: Engine,
  request: ResourceRequest,
  body: string,
): Promise<PatchOutcome> {
  const { type, query, subresource } = request;
  const applied = parseObject(body, "application/apply-patch+yaml") as UnknownObject;
  checkApplied(request, applied);
  const [unknown] = dropUnknownFields(type, applied);
  if (unknown !== undefined) throw untypable(applied, `.${unknown}: field not declared in schema`);
  const force = query.get("force") === "true";
  const writer: Writer = {
    manager: request.manager,
    apiVersion: groupVersionOf(type),
    subresource: subresource || undefined,
    now: timestamp(engine.clock),
  };
  const ignored = ignoredFields(request, applied);
  const lay = (live: UnknownObject | undefined) => {
    const next = applyObject(live, copyOf(applied), type.schema, writer, {
      force,
      ignored,
    });
    next.object.metadata.managedFields = next.managedFields;
    return next.object;
  };
  if (!engine.store.get(placeOf(request))) {
    if (subresource) throw notFound(type, request.name);
    if (applied.metadata.uid) {
      throw new StatusError({
        code: 409,
        message:
          "uid mismatch: the provided object specified a uid, but no object exists by that name",
      });
    }
    const object = await createObject(engine, request, lay(undefined), { tracked: true });
    return { object, created: true };
  }
  const object = await updateObject(engine, request, { modify: lay, tracked: true, subresource });
  return { object, created: false };
}

function checkApplied(request: ResourceRequest, applied: UnknownObject): void {
  const { type, name, namespace, query } = request;
  if (!query.get("fieldManager")) {
    const errors = new FieldErrors();
    errors.required("fieldManager", "is required for apply patch");
    errors.throwIfAny("PatchOptions", "meta.k8s.io", "");
  }
  if (applied.apiVersion !== groupVersionOf(type) || applied.kind !== type.kind) {
    const { apiVersion = "", kind = "" } = applied;
    const groupVersion =
      apiVersion.includes("/") || !apiVersion ? apiVersion || "/" : `/${apiVersion}`;
    throw badRequest(`invalid object type: ${groupVersion}, Kind=${kind}`);
  }
  applied.metadata ??= {};
  if (applied.metadata.managedFields) {
    throw badRequest("metadata.managedFields must be nil");
  }
  delete applied.metadata.managedFields;
  if ((applied.metadata.name ??= name) !== name) {
    throw badRequest(
      `the name of the object (${applied.metadata.name}) does not match the name on the URL (${name})`,
    );
  }
  if (type.namespaced && (applied.metadata.namespace ??= namespace) !== namespace) {
    throw badRequest(
      `the namespace of the object (${applied.metadata.namespace}) does not match the namespace on the URL (${namespace})`,
    );
  }
}

/** What the endpoint does not write cannot be owned through it either. */
function ignoredFields({ type, subresource }: ResourceRequest, applied: UnknownObject): FieldSet {
  if (subresource === "status") {
    const all = fieldsOf(applied, type.schema);
    return Object.fromEntries(
      Object.keys(all)
        .filter(
          (element) => element !== "f:status" && element !== "f:apiVersion" && element !== "f:kind",
        )
        .map((element) => [element, {}]),
    );
  }
  return type.hasStatus ? { "f:status": {} } : {};
}

function forceOnlyForApply({ query }: ResourceRequest): StatusError {
  const errors = new FieldErrors();
  errors.forbidden("force", "may not be specified for non-apply patch");
  try {
    errors.throwIfAny("PatchOptions", "meta.k8s.io", "");
  } catch (error) {
    return error as StatusError;
  }
  return badRequest(`force: ${query.get("force")}`);
}
