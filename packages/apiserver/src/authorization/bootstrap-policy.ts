import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { type Clock, deepEqual, type ObjectMeta, type UnknownObject } from "@spry/kube";
import { type Place, type Store } from "../store/store.ts";
import { timestampOf } from "../timestamp.ts";
import { type PolicyRule } from "./policy-rule.ts";
import { rbacGroup, type Subject } from "./rule-resolver.ts";
import { uncovered } from "./rule-coverage.ts";

/** A role or binding as `tools/generate-bootstrap-policy` writes it. */
type PolicyObject = UnknownObject & { metadata: ObjectMeta & { name: string } };

const plurals: Record<string, string> = {
  ClusterRole: "clusterroles",
  ClusterRoleBinding: "clusterrolebindings",
  Role: "roles",
  RoleBinding: "rolebindings",
};
const autoUpdate = "rbac.authorization.kubernetes.io/autoupdate";

/**
 * Ensures that the roles and bindings which Kubernetes has from its start exist with all of their rules and subjects.
 * What others have added stays; an object whose annotation `autoupdate` is `false` is left unchanged (RBAC,
 * "Auto-reconciliation"). The Namespaces must exist.
 */
export async function ensureBootstrapPolicy(store: Store, clock: Clock): Promise<void> {
  const url = new URL("../generated/bootstrap-policy.json", import.meta.url);
  const { objects } = JSON.parse(readFileSync(url, "utf8")) as { objects: PolicyObject[] };
  const writes: Promise<unknown>[] = [];
  for (const wanted of objects) {
    const { name, namespace = "" } = wanted.metadata;
    const plural = plurals[wanted.kind ?? ""] ?? "";
    const place: Place = { collection: `${rbacGroup}/${plural}`, namespace, name };
    const stored = store.get(place);
    if (!stored) writes.push(store.put(place, undefined, created(wanted, clock)));
    else {
      const next = reconciled(stored.object, wanted);
      if (!deepEqual(next, stored.object)) writes.push(store.put(place, stored, next));
    }
  }
  await Promise.all(writes);
}

function created(wanted: PolicyObject, clock: Clock): UnknownObject {
  return {
    ...wanted,
    metadata: {
      ...wanted.metadata,
      uid: randomUUID(),
      creationTimestamp: timestampOf(clock.now()),
    },
  };
}

function reconciled(present: UnknownObject, wanted: PolicyObject): UnknownObject {
  const { metadata } = present;
  if (metadata.annotations?.[autoUpdate] === "false") return present;
  const next: UnknownObject = {
    ...present,
    metadata: {
      ...metadata,
      labels: { ...wanted.metadata.labels, ...metadata.labels },
      annotations: { ...wanted.metadata.annotations, ...metadata.annotations },
    },
  };
  if (wanted.roleRef) {
    const subjects = (present.subjects as Subject[] | null | undefined) ?? [];
    const missing = ((wanted.subjects as Subject[] | null) ?? []).filter(
      (each) => !subjects.some((known) => deepEqual(known, each)),
    );
    if (missing.length > 0) next.subjects = [...subjects, ...missing];
    return next;
  }
  const rules = (present.rules as PolicyRule[] | null | undefined) ?? [];
  const expected = (wanted.rules as PolicyRule[] | null | undefined) ?? [];
  // Nearly always equal, and then nothing has to be taken apart.
  const missing = deepEqual(rules, expected) ? [] : uncovered(rules, expected);
  if (missing.length > 0) next.rules = [...rules, ...missing];
  if (wanted.aggregationRule) next.aggregationRule ??= wanted.aggregationRule;
  return next;
}
