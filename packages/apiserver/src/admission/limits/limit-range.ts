import { aggregated } from "../expressions/match-conditions.ts";
import {
  type Amounts,
  amountsOf,
  type Container,
  formatQuantity,
  type Pod,
  podAmounts,
  type Quantity,
  type UnknownObject,
} from "@spry/kube";
import { forbidden } from "../../errors.ts";
import { type Store } from "../../store/store.ts";
import { type AdmissionAttributes, nameOf } from "../attributes.ts";

type List = Record<string, string>;

/** `core/v1 LimitRangeItem`. */
export interface LimitRangeItem {
  type: string;
  min?: List;
  max?: List;
  default?: List;
  defaultRequest?: List;
  maxLimitRequestRatio?: List;
}

const annotation = "kubernetes.io/limit-ranger";

/** The admission plugin LimitRanger (`plugin/pkg/admission/limitranger`). */
export class LimitRanger {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Gives containers of a new Pod the resources that they do not ask for themselves. */
  mutate({ request, operation, object }: AdmissionAttributes): void {
    if (request.type.collection !== "/pods" || request.subresource || operation !== "CREATE")
      return;
    for (const items of this.#limits(request.namespace))
      setDefaults(object as unknown as Pod, items);
  }

  validate(attributes: AdmissionAttributes): void {
    const { request, operation, object, old } = attributes;
    const { collection } = request.type;
    const isPod = collection === "/pods";
    if (!isPod && collection !== "/persistentvolumeclaims") return;
    if (!object || request.subresource || (isPod && operation === "UPDATE")) return;
    if (old?.metadata.deletionTimestamp) return;
    for (const items of this.#limits(request.namespace)) {
      const problems = isPod
        ? podProblems(object as unknown as Pod, items)
        : claimProblems(object, items);
      if (problems.length > 0)
        throw forbidden(request.type, nameOf(attributes), aggregated(problems));
    }
  }

  #limits(namespace: string): LimitRangeItem[][] {
    return this.#store
      .list("/limitranges", namespace)
      .map(
        ({ object }) => (object.spec as { limits?: LimitRangeItem[] } | undefined)?.limits ?? [],
      );
  }
}

function setDefaults({ spec, metadata }: Pod, items: LimitRangeItem[]): void {
  const own = items.filter(({ type }) => type === "Container");
  const defaults = {
    limits: Object.assign({}, ...own.map((item) => item.default)) as List,
    requests: Object.assign({}, ...own.map((item) => item.defaultRequest)) as List,
  };
  const defaulted = [
    ...(spec?.containers ?? []).flatMap((each) => completed(each, defaults, "container")),
    ...(spec?.initContainers ?? []).flatMap((each) => completed(each, defaults, "init container")),
  ];
  if (defaulted.length === 0) return;
  metadata.annotations = {
    ...metadata.annotations,
    [annotation]: `LimitRanger plugin set: ${defaulted.join("; ")}`,
  };
}

/** What was set, in words. */
function completed(
  container: Container,
  defaults: Record<"limits" | "requests", List>,
  kind: string,
): string[] {
  const resources = (container.resources ??= {}) as Partial<Record<"limits" | "requests", List>>;
  const defaulted: string[] = [];
  for (const [side, word] of [
    ["requests", "request"],
    ["limits", "limit"],
  ] as const) {
    const given = resources[side] ?? {};
    const missing = Object.keys(defaults[side]).filter((name) => !Object.hasOwn(given, name));
    if (missing.length === 0) continue;
    resources[side] = { ...defaults[side], ...given };
    defaulted.push(`${missing.sort().join(", ")} ${word} for ${kind} ${container.name}`);
  }
  return defaulted;
}

function podProblems({ spec }: Pod, items: LimitRangeItem[]): string[] {
  return items.flatMap((item) => {
    if (item.type === "Container") {
      const containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
      return containers.flatMap(({ resources }) =>
        problems(
          item,
          amountsOf(resources?.requests as List),
          amountsOf(resources?.limits as List),
        ),
      );
    }
    if (item.type !== "Pod") return [];
    return problems(item, podAmounts(spec, "requests"), podAmounts(spec, "limits"));
  });
}

function problems(item: LimitRangeItem, requests: Amounts, limits: Amounts): string[] {
  const check = (rule: Rule, list: List | undefined) =>
    [...amountsOf(list)].flatMap(([name, enforced]) => {
      const amounts = { request: requests.get(name), limit: limits.get(name) };
      return rule(item.type, name, enforced, amounts) ?? [];
    });
  return [
    ...check(belowMinimum, item.min),
    ...check(aboveMaximum, item.max),
    ...check(aboveRatio, item.maxLimitRequestRatio),
  ];
}

function claimProblems(claim: UnknownObject, items: LimitRangeItem[]): string[] {
  const { resources } = (claim.spec ?? {}) as { resources?: { requests?: List } };
  const requests = amountsOf(resources?.requests);
  return items
    .filter(({ type }) => type === "PersistentVolumeClaim")
    .flatMap(({ type, min, max }) => [
      ...[...amountsOf(min)].flatMap(
        ([name, enforced]) =>
          belowMinimum(type, name, enforced, { request: requests.get(name), limit: undefined }) ??
          [],
      ),
      ...[...amountsOf(max)].flatMap(
        ([name, enforced]) => aboveMaximumRequest(type, name, enforced, requests.get(name)) ?? [],
      ),
    ]);
}

interface Amount {
  request: Quantity | undefined;
  limit: Quantity | undefined;
}
type Rule = (type: string, name: string, enforced: Quantity, amount: Amount) => string | undefined;

const belowMinimum: Rule = (type, name, enforced, { request, limit }) => {
  const message = `minimum ${name} usage per ${type} is ${formatQuantity(enforced)}`;
  if (!request) return `${message}.  No request is specified`;
  if (request.nano < enforced.nano) return `${message}, but request is ${formatQuantity(request)}`;
  if (limit && limit.nano < enforced.nano)
    return `${message}, but limit is ${formatQuantity(limit)}`;
  return undefined;
};

const aboveMaximum: Rule = (type, name, enforced, { request, limit }) => {
  const message = `maximum ${name} usage per ${type} is ${formatQuantity(enforced)}`;
  if (!limit) return `${message}.  No limit is specified`;
  if (limit.nano > enforced.nano) return `${message}, but limit is ${formatQuantity(limit)}`;
  if (request && request.nano > enforced.nano)
    return `${message}, but request is ${formatQuantity(request)}`;
  return undefined;
};

function aboveMaximumRequest(
  type: string,
  name: string,
  enforced: Quantity,
  request: Quantity | undefined,
): string | undefined {
  const message = `maximum ${name} usage per ${type} is ${formatQuantity(enforced)}`;
  if (!request) return `${message}.  No request is specified`;
  return request.nano > enforced.nano
    ? `${message}, but request is ${formatQuantity(request)}`
    : undefined;
}

const aboveRatio: Rule = (type, name, enforced, { request, limit }) => {
  const message = `${name} max limit to request ratio per ${type} is ${formatQuantity(enforced)}`;
  if (!request?.nano) return `${message}, but no request is specified or request is 0`;
  if (!limit?.nano) return `${message}, but no limit is specified or limit is 0`;
  const ratio = Number(limit.nano) / Number(request.nano);
  const largest = Number(enforced.nano) / 1e9;
  return ratio > largest ? `${message}, but provided ratio is ${ratio.toFixed(6)}` : undefined;
};
