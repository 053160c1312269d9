import { messageOf, StatusError } from "@spry/kube";
import { type UserInfo } from "../request.ts";
import { notFound } from "../errors.ts";
import { type Store } from "../store/store.ts";
import { type PolicyRule } from "./policy-rule.ts";

export const rbacGroup = "rbac.authorization.k8s.io";

export interface RoleRef {
  apiGroup: string;
  kind: string;
  name: string;
}

export interface Subject {
  kind: string;
  apiGroup?: string;
  name: string;
  namespace?: string;
}

/** What is kept of a RoleBinding or ClusterRoleBinding. */
interface Binding {
  kind: "RoleBinding" | "ClusterRoleBinding";
  namespace: string;
  name: string;
  roleRef: RoleRef;
  subjects: Subject[];
}

/** A binding, and the first of its subjects that is the user. */
interface Applied {
  binding: Binding;
  subject: Subject;
}

/** A rule that applies to a user, and why; or what is wrong with a binding of theirs. */
export type Found = { rule: PolicyRule; source: string } | { problem: string };

const bindingCollections = [`${rbacGroup}/clusterrolebindings`, `${rbacGroup}/rolebindings`];

/**
 * Finds the rules that roles and bindings give to a user. Bindings are indexed by subject, so that the cost of a
 * request depends on what its user has and not on what the cluster has; the index is built again after a change.
 */
export class RuleResolver {
  readonly #store: Store;
  #index: Map<string, Binding[]> | undefined;
  readonly #stops: (() => void)[];

  constructor(store: Store) {
    this.#store = store;
    this.#stops = bindingCollections.map((collection) =>
      store.watch(collection, store.revision, () => {
        this.#index = undefined;
      }),
    );
  }

  close(): void {
    for (const stop of this.#stops) stop();
  }

  /** Rules for the whole cluster, then those of the namespace, when one is given. */
  *rulesFor(user: UserInfo, namespace: string): Generator<Found> {
    for (const scope of namespace ? ["", namespace] : [""]) {
      for (const { binding, subject } of this.#bindingsOf(user, scope)) {
        let rules: PolicyRule[];
        try {
          rules = this.rulesOf(binding.roleRef, scope);
        } catch (error) {
          yield { problem: messageOf(error) };
          continue;
        }
        const source = describe(binding, subject);
        for (const rule of rules) yield { rule, source };
      }
    }
  }

  /** The rules of the role that a binding in this namespace refers to. Throws a `StatusError` 404. */
  rulesOf({ kind, name }: RoleRef, namespace: string): PolicyRule[] {
    if (kind !== "Role" && kind !== "ClusterRole") {
      throw new StatusError({ code: 500, message: `unsupported role reference kind: "${kind}"` });
    }
    const plural = kind === "Role" ? "roles" : "clusterroles";
    const stored = this.#store.get({
      collection: `${rbacGroup}/${plural}`,
      namespace: kind === "Role" ? namespace : "",
      name,
    });
    if (!stored) throw notFound({ group: rbacGroup, plural: kind.toLowerCase() }, name);
    return (stored.object.rules as PolicyRule[] | null | undefined) ?? [];
  }

  #bindingsOf(user: UserInfo, scope: string): Iterable<Applied> {
    this.#index ??= this.#made();
    const found = new Map<string, Applied>();
    for (const key of [`User ${user.name}`, ...user.groups.map((group) => `Group ${group}`)]) {
      for (const binding of this.#index.get(`${scope} ${key}`) ?? []) {
        const subject = binding.subjects.find((each) => subjectKeys(each, scope).includes(key));
        if (subject && !found.has(binding.name)) found.set(binding.name, { binding, subject });
      }
    }
    return found.values();
  }

  #made(): Map<string, Binding[]> {
    const index = new Map<string, Binding[]>();
    for (const collection of bindingCollections) {
      for (const { object } of this.#store.list(collection)) {
        const { namespace = "", name = "" } = object.metadata;
        const binding = {
          kind: namespace ? ("RoleBinding" as const) : ("ClusterRoleBinding" as const),
          namespace,
          name,
          roleRef: object.roleRef as RoleRef,
          subjects: (object.subjects as Subject[] | null | undefined) ?? [],
        };
        const keys = new Set(binding.subjects.flatMap((each) => subjectKeys(each, namespace)));
        for (const key of keys) {
          const place = `${namespace} ${key}`;
          const list = index.get(place);
          if (list) list.push(binding);
          else index.set(place, [binding]);
        }
      }
    }
    return index;
  }
}

/** A ServiceAccount is the user that it authenticates as. */
function subjectKeys({ kind, name, namespace }: Subject, scope: string): string[] {
  if (kind === "User" || kind === "Group") return [`${kind} ${name}`];
  const home = namespace || scope;
  if (kind !== "ServiceAccount" || !home) return [];
  return [`User system:serviceaccount:${home}:${name}`];
}

function describe({ kind, namespace, name, roleRef }: Binding, subject: Subject): string {
  const home = subject.kind === "ServiceAccount" ? `/${subject.namespace || namespace}` : "";
  const where = namespace ? `/${namespace}` : "";
  return `${kind} "${name}${where}" of ${roleRef.kind} "${roleRef.name}" to ${subject.kind} "${subject.name}${home}"`;
}
