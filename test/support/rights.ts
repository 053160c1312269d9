/** What an account has asked the API server for, next to what its role allows. */
import { type Rule } from "../../packages/cli/src/install/access.ts";
import { type AuditEvent } from "./installed-cluster.ts";

/** `<verb> <group>/<resource>[/<subresource>]` */
export function rightOf({ verb, objectRef }: AuditEvent): string {
  const { apiGroup = "", resource = "", subresource } = objectRef ?? {};
  return `${verb} ${apiGroup}/${resource}${subresource ? `/${subresource}` : ""}`;
}

/** By its rights alone: that a namespace is ending, or a quota full, is answered by 403 too. */
export function rightsMissing(asked: readonly AuditEvent[]): string[] {
  const decision = "authorization.k8s.io/decision";
  return asked
    .filter(({ annotations }) => annotations?.[decision] === "forbid")
    .map((event) => rightOf(event));
}

/** What the rules allow, and the account has not asked for. */
export function rightsUnused(asked: readonly AuditEvent[], rules: readonly Rule[]): string[] {
  const used = new Set(asked.flatMap(rightsUsed));
  return rules.flatMap(rightsIn).filter((right) => !used.has(right));
}

/** An applied object that was not there takes the right to create it, too. */
export function rightsUsed(event: AuditEvent): string[] {
  const right = rightOf(event);
  const created = event.verb === "patch" && event.responseStatus?.code === 201;
  return created ? [right, right.replace("patch", "create")] : [right];
}

/** All that a rule allows. */
export function rightsIn({ apiGroups, resources: kinds, verbs }: Rule): string[] {
  return apiGroups.flatMap((group) =>
    kinds.flatMap((kind) => verbs.map((verb) => `${verb} ${group}/${kind}`)),
  );
}
