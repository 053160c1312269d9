import { deepEqual, isNotFound, type UnknownObject } from "@spry/kube";
import { type ResourceRequest, type UserInfo } from "../request.ts";
import { forbidden, notFound } from "../errors.ts";
import { administrators, type Authorizer } from "./authorizer.ts";
import { type PolicyRule } from "./policy-rule.ts";
import { describeRules, listed, uncovered } from "./rule-coverage.ts";
import { rbacGroup, type RoleRef } from "./rule-resolver.ts";

const everything: PolicyRule[] = [
  { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
  { verbs: ["*"], nonResourceURLs: ["*"] },
];

/**
 * Users cannot grant more than they have: throws a `StatusError` 403 when a role or binding that is to be written
 * holds rights that its writer lacks, unless the writer has the verb `escalate` on roles, or `bind` on the role
 * (RBAC, "Privilege escalation prevention and bootstrapping").
 */
export function preventEscalation(
  authorizer: Authorizer,
  request: ResourceRequest,
  next: UnknownObject,
  old: UnknownObject | undefined,
): void {
  const { type, user } = request;
  if (type.group !== rbacGroup || user.groups.includes(administrators)) return;
  if (old && changesOnlyItsOwnership(next, old)) return;
  if (type.plural.endsWith("bindings")) preventBinding(authorizer, request, next);
  else preventRole(authorizer, request, next, old);
}

function preventRole(
  authorizer: Authorizer,
  { type, user, namespace, name }: ResourceRequest,
  next: UnknownObject,
  old: UnknownObject | undefined,
): void {
  const about = { user, group: rbacGroup, resource: type.plural, subresource: "", namespace, name };
  if (authorizer.decide({ ...about, verb: "escalate" }).allowed) return;
  const missing = missingOf(authorizer, user, namespace, (next.rules as PolicyRule[] | null) ?? []);
  if (missing) throw forbidden(type, next.metadata.name ?? "", missing);
  if (!aggregates(next) && !(old && aggregates(old))) return;
  if (!missingOf(authorizer, user, namespace, everything)) return;
  const cause = "must have cluster-admin privileges to use the aggregationRule";
  throw forbidden(type, next.metadata.name ?? "", cause);
}

function preventBinding(
  authorizer: Authorizer,
  request: ResourceRequest,
  next: UnknownObject,
): void {
  const { type, user, namespace } = request;
  const roleRef = next.roleRef as RoleRef | undefined;
  // What refers to no role is refused by validation.
  if (!roleRef || !["Role", "ClusterRole"].includes(roleRef.kind)) return;
  const allowed = authorizer.decide({
    user,
    verb: "bind",
    group: roleRef.apiGroup,
    resource: roleRef.kind === "Role" ? "roles" : "clusterroles",
    subresource: "",
    namespace,
    name: roleRef.name,
  }).allowed;
  if (allowed) return;
  const rules = rulesToBind(authorizer, request, roleRef);
  const missing = missingOf(authorizer, user, namespace, rules);
  if (missing) throw forbidden(type, next.metadata.name ?? "", missing);
}

/** A role that does not exist is reported as if the binding did not: so does a real API server. */
function rulesToBind(
  { resolver }: Authorizer,
  { type, namespace }: ResourceRequest,
  roleRef: RoleRef,
): PolicyRule[] {
  try {
    return resolver.rulesOf(roleRef, namespace);
  } catch (error) {
    throw isNotFound(error) ? notFound(type, roleRef.name) : error;
  }
}

/** What the user lacks of these rights, as a sentence; undefined when it is nothing. */
function missingOf(
  authorizer: Authorizer,
  user: UserInfo,
  namespace: string,
  wanted: readonly PolicyRule[],
): string | undefined {
  const { rules, problems } = authorizer.rulesFor(user, namespace);
  const missing = uncovered(rules, wanted);
  if (missing.length === 0) return undefined;
  const who = `user ${JSON.stringify(user.name)} (groups=${listed(user.groups)})`;
  const suffix = problems.length > 0 ? `; resolution errors: [${problems.join(", ")}]` : "";
  return `${who} is attempting to grant RBAC permissions not currently held:\n${describeRules(missing).join("\n")}${suffix}`;
}

function aggregates({ aggregationRule }: UnknownObject): boolean {
  const rule = aggregationRule as { clusterRoleSelectors?: unknown[] } | undefined;
  return (rule?.clusterRoleSelectors?.length ?? 0) > 0;
}

/** The garbage collector has to get rid of roles that it could not grant. */
function changesOnlyItsOwnership(next: UnknownObject, old: UnknownObject): boolean {
  const rest = ({ metadata, ...object }: UnknownObject) => {
    const { ownerReferences: _, finalizers: __, managedFields: ___, ...meta } = metadata;
    return { ...object, metadata: meta };
  };
  return deepEqual(rest(next), rest(old));
}
