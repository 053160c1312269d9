import {
  type Amounts,
  amountsOf,
  type Clock,
  type Container,
  excessOf,
  formatQuantity,
  type KubeObject,
  masked,
  parseQuantity,
  type Pod,
  type QuotaEvaluator,
  quotaEvaluatorOf,
  type ResourceQuota,
  resourceListOf,
  scopesOf,
  sumOf,
  timestamp,
  type UnknownObject,
  usageOf,
} from "@spry/kube";
import { managedFieldsAfterUpdate } from "../../apply/managed-fields.ts";
import { forbidden } from "../../errors.ts";
import { type Catalog } from "../../resources/catalog.ts";
import { type ResourceType } from "../../resources/resource-type.ts";
import { type StoredObject } from "../../store/stored-object.ts";
import { type Store } from "../../store/store.ts";
import { type AdmissionAttributes, isNamespace, nameOf } from "../attributes.ts";

const collection = "/resourcequotas";
const maxOwn = 10_000;
type List = Record<string, string>;

/** A quota that a request uses some of. */
interface Charge {
  stored: StoredObject;
  used: Amounts;
}

/**
 * The admission plugin ResourceQuota (`k8s.io/apiserver/pkg/admission/plugin/resourcequota`). Usage is raised
 * together with the object itself, in one transaction; a controller counts again, and lowers it.
 */
export class QuotaAdmission {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #type: ResourceType;
  /** By revisions of quotas that were written here: when the count was made on which they are based. */
  readonly #own = new Map<string, number>();

  constructor(store: Store, catalog: Catalog, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    const type = catalog.find("", "v1", "resourcequotas");
    if (!type) throw new Error("resourcequotas are not served");
    this.#type = type;
  }

  /**
   * To be called when nothing can come between it and the write of the object: without an await, so that
   * requests at the same time cannot exceed a quota together. Throws a `StatusError` 403.
   */
  charge(attributes: AdmissionAttributes): void {
    const { request, object } = attributes;
    const { type } = request;
    if (!type.namespaced || isNamespace(type) || !object) return;
    const quotas = this.#store.list(collection, request.namespace);
    if (quotas.length === 0) return;
    const evaluator = quotaEvaluatorOf(type.group, type.plural);
    if (!isCounted(evaluator, attributes)) return;
    const charges = this.#charges(quotas, evaluator, attributes, object);
    if (request.dryRun) return;
    for (const { stored, used } of charges) {
      const next = stored.copy() as unknown as ResourceQuota;
      next.status = { ...next.status, used: resourceListOf(used) };
      this.#track(stored.object, next);
      const countedAt = this.#countedAt(stored);
      // It shares its transaction with the object that is about to be written, which reports a failure.
      this.#store.put(stored, stored, next as unknown as UnknownObject).catch(() => {});
      this.#own.set(next.metadata.resourceVersion ?? "", countedAt);
      if (this.#own.size > maxOwn) this.#own.delete(this.#own.keys().next().value ?? "");
    }
  }

  #track(old: UnknownObject, next: UnknownObject): void {
    next.metadata.managedFields = managedFieldsAfterUpdate(old, next, this.#type.schema, {
      manager: "kube-apiserver",
      apiVersion: "v1",
      subresource: "status",
      now: timestamp(this.#clock),
    });
  }

  #charges(
    quotas: StoredObject[],
    evaluator: QuotaEvaluator,
    attributes: AdmissionAttributes,
    object: UnknownObject,
  ): Charge[] {
    const { request, old } = attributes;
    const refuse = (cause: string) => forbidden(request.type, nameOf(attributes), cause);
    const interesting = quotas.filter(({ object: quota }) =>
      isInteresting(quota, evaluator, object),
    );
    for (const { object: quota, name } of interesting) {
      const names = evaluator.matching(Object.keys(statusOf(quota).hard ?? {}));
      const missing = missingResources(request.type.collection, object, names);
      if (missing) throw refuse(`failed quota: ${name}: ${missing}`);
      const used = statusOf(quota).used ?? {};
      if (names.some((each) => !Object.hasOwn(used, each))) {
        throw refuse(`status unknown for quota: ${name}, resources: ${names.join(",")}`);
      }
    }
    const now = this.#clock.now();
    const usage = evaluator.usage(object, now);
    const before = old && evaluator.usage(old, now);
    return interesting.flatMap((stored) => {
      const { object: quota, name } = stored;
      const counted = before && old && isInteresting(quota, evaluator, old);
      const added = counted ? excessOf(usage, before) : usage;
      const requested = masked(nonZero(added), Object.keys(statusOf(quota).hard ?? {}));
      if (requested.size === 0) return [];
      const hard = amountsOf(statusOf(quota).hard);
      let used: Amounts = amountsOf(statusOf(quota).used);
      const isExceeded = exceededNames(sumOf(used, requested), requested, hard).length > 0;
      if (isExceeded && this.#hasDeletions(stored, request))
        used = this.#counted(quota, evaluator, request, used);
      const next = sumOf(used, requested);
      const exceeded = exceededNames(next, requested, hard);
      if (exceeded.length > 0) {
        const shown = (amounts: Amounts) => shownAmounts(masked(amounts, exceeded));
        throw refuse(
          `exceeded quota: ${name}, requested: ${shown(requested)}, used: ${shown(used)}, limited: ${shown(hard)}`,
        );
      }
      return [{ stored, used: next }];
    });
  }

  /** The revision at which another writer last set the usage. */
  #countedAt({ revision }: StoredObject): number {
    return this.#own.get(String(revision)) ?? revision;
  }

  /**
   * Whether any object of the kind has been deleted since then. If the history does not go back that far, the answer
   * is yes.
   */
  #hasDeletions(quota: StoredObject, { type, namespace }: AdmissionAttributes["request"]): boolean {
    let found = false;
    try {
      this.#store.watch(type.collection, this.#countedAt(quota), ({ type: event, current }) => {
        found ||= event === "DELETED" && current.namespace === namespace;
      })();
    } catch {
      return true;
    }
    return found;
  }

  /**
   * `used` without what has been deleted since it was counted: the controller may not have got to it, and no request
   * may be refused because of objects that are deleted.
   */
  #counted(
    quota: UnknownObject,
    evaluator: QuotaEvaluator,
    { type, namespace }: AdmissionAttributes["request"],
    used: Amounts,
  ): Amounts {
    const now = this.#clock.now();
    const names = evaluator.matching(Object.keys(statusOf(quota).hard ?? {}));
    const counted = this.#store
      .list(type.collection, namespace)
      .filter(({ object }) => isInteresting(quota, evaluator, object))
      .map(({ object }) => masked(evaluator.usage(object, now), names))
      .reduce<Amounts>(sumOf, new Map());
    const isLess = (name: string) => (counted.get(name)?.nano ?? 0n) < (used.get(name)?.nano ?? 0n);
    const less = names.filter(isLess).map((name) => [name, counted.get(name) ?? zero] as const);
    return new Map([...used, ...less]);
  }
}

const zero = parseQuantity("0");

function statusOf(quota: UnknownObject): { hard?: List; used?: List } {
  return quota.status ?? {};
}

function isCounted(evaluator: QuotaEvaluator, attributes: AdmissionAttributes): boolean {
  const { request, operation, object, old } = attributes;
  if (request.subresource) return false;
  if (operation === "CREATE") return true;
  if (operation !== "UPDATE") return false;
  if (evaluator.countsUpdates) return true;
  // A Pod's deadline is the one thing that moves it from one scope to another.
  const deadline = (pod: UnknownObject | undefined) =>
    ((pod as unknown as Pod | undefined)?.spec?.activeDeadlineSeconds ?? -1) >= 0;
  return request.type.collection === "/pods" && deadline(object) !== deadline(old);
}

function isInteresting(
  quota: UnknownObject,
  evaluator: QuotaEvaluator,
  object: UnknownObject,
): boolean {
  if (evaluator.matching(Object.keys(statusOf(quota).hard ?? {})).length === 0) return false;
  return scopesOf((quota as unknown as ResourceQuota).spec as Parameters<typeof scopesOf>[0]).every(
    (scope) => evaluator.isInScope(scope, object as KubeObject),
  );
}

function nonZero(amounts: Amounts): Amounts {
  return new Map([...amounts].filter(([, { nano }]) => nano !== 0n));
}

function exceededNames(next: Amounts, requested: Amounts, hard: Amounts): string[] {
  return [...requested.keys()].filter((name) => {
    const limit = hard.get(name);
    return limit !== undefined && (next.get(name)?.nano ?? 0n) > limit.nano;
  });
}

function shownAmounts(amounts: Amounts): string {
  return [...amounts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, quantity]) => `${name}=${formatQuantity(quantity)}`)
    .join(",");
}

/** Under a quota of cpu or memory each container has to say how much it wants. */
const demanded = ["cpu", "memory"].flatMap((name) => [name, `requests.${name}`, `limits.${name}`]);

function missingResources(
  kind: string,
  object: UnknownObject,
  names: string[],
): string | undefined {
  if (kind !== "/pods") return undefined;
  const { spec } = object as unknown as Pod;
  if ((spec as { resources?: object } | undefined)?.resources) return undefined;
  const required = names.filter((name) => demanded.includes(name)).sort();
  const containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  const missing = required.flatMap((name) => {
    const without = containers.filter((each) => !ownUsage(each).has(name));
    const names = without.map((each) => each.name).sort();
    return names.length > 0 ? [`${name} for: ${[...new Set(names)].join(",")}`] : [];
  });
  return missing.length > 0 ? `must specify ${missing.join("; ")}` : undefined;
}

function ownUsage({ resources }: Container): Amounts {
  return usageOf(amountsOf(resources?.requests), amountsOf(resources?.limits));
}
