import { StatusError, type UnknownObject } from "@spry/kube";
import { forbidden } from "../errors.ts";
import { type ResourceRequest, type UserInfo } from "../request.ts";
import { type Growth, ObjectTooLargeError, StoreQuotaError } from "../store/stored-bytes.ts";

/** What removing a finalizer may add: a record of who has done it. */
const finalizerSlack = 4096;
/** The platform's processes, and its nodes. */
const ownGroups = ["spry:system", "system:nodes"];
/** Whom the server takes a caller of its own process for. */
export const ownAdministrator = "system:admin";

/** How much a write may add to what is stored. */
export function growthOf(
  user: UserInfo,
  next: UnknownObject,
  old: UnknownObject | undefined,
): Growth {
  const own =
    user.name === ownAdministrator || user.groups.some((each) => ownGroups.includes(each));
  const isFreed = finalizersOf(next) < finalizersOf(old);
  return { own, ...(isFreed && { slack: finalizerSlack }) };
}

function finalizersOf(object: UnknownObject | undefined): number {
  const { finalizers = [] } = (object?.spec ?? {}) as { finalizers?: unknown[] };
  const ofNamespace = object?.kind === "Namespace" ? finalizers.length : 0;
  return (object?.metadata.finalizers?.length ?? 0) + ofNamespace;
}

/** A refusal as clients see it; another error as it is. */
export function withoutRoom({ type }: ResourceRequest, name: string, error: unknown): unknown {
  if (error instanceof ObjectTooLargeError)
    return new StatusError({ code: 413, message: error.message });
  if (!(error instanceof StoreQuotaError)) return error;
  const refusal: StatusError = forbidden(type, name, error.message);
  return refusal;
}
