import { type UnknownObject } from "@spry/kube";
import { forbidden } from "../../errors.ts";
import { type StoredObject } from "../../store/stored-object.ts";
import { type Store } from "../../store/store.ts";
import { type AdmissionAttributes, nameOf } from "../attributes.ts";

/** Something of a namespace's objects that all tenants' networks share. */
interface Measure {
  collection: string;
  /** How much one object has of it. */
  of: (object: UnknownObject) => number;
  /** Of a namespace. */
  max: number;
  /** As a message has it, after "its". */
  what: string;
}

interface ServiceSpec {
  ports?: { nodePort?: number }[];
}

interface PolicyRule {
  ports?: unknown[];
  from?: PolicyPeer[];
  to?: PolicyPeer[];
}

interface PolicyPeer {
  ipBlock?: { except?: unknown[] };
}

interface PolicySpec {
  ingress?: PolicyRule[];
  egress?: PolicyRule[];
}

const portsOf = ({ spec }: UnknownObject) => (spec as ServiceSpec | undefined)?.ports ?? [];

/** A policy is looked at for each Pod of its namespace, a selector for each Pod that there is; blocks and ports are entries of a set. */
const policyWeight = 20;
const selectorWeight = 10;

function weightOfPolicy({ spec }: UnknownObject): number {
  const { ingress = [], egress = [] } = (spec ?? {}) as PolicySpec;
  let weight = policyWeight;
  for (const { ports = [], from = [], to = [] } of [...ingress, ...egress]) {
    weight += 1 + ports.length;
    for (const { ipBlock } of [...from, ...to])
      weight += ipBlock ? 1 + (ipBlock.except?.length ?? 0) : selectorWeight;
  }
  return weight;
}

const measures: Measure[] = [
  { collection: "/services", of: () => 1, max: 20_000, what: "Services" },
  {
    collection: "/services",
    of: (service) => portsOf(service).length,
    max: 40_000,
    what: "Services' ports",
  },
  {
    collection: "/services",
    of: (service) => portsOf(service).filter(({ nodePort }) => nodePort).length,
    max: 500,
    what: "Services' node ports",
  },
  {
    collection: "networking.k8s.io/networkpolicies",
    of: weightOfPolicy,
    max: 5_000,
    what: `NetworkPolicies' entries (${policyWeight} for a policy, ${selectorWeight} for a peer with selectors, 1 for each rule, block, exception and port)`,
  },
];

/** Bounds, by namespace, of what each Pod's network follows from. */
export class NetworkLimits {
  readonly #store: Store;
  /** Of each measure, by namespace; made when it is needed first, and kept up to date from then on. */
  readonly #totals = new Map<Measure, Map<string, number>>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** To be called right before the write, without an await between. Throws a `StatusError` 403 with the numbers. */
  charge(attributes: AdmissionAttributes): void {
    const { request, object, old } = attributes;
    if (!object) return;
    for (const measure of measures) {
      if (measure.collection !== request.type.collection) continue;
      const growth = measure.of(object) - (old ? measure.of(old) : 0);
      if (growth <= 0) continue;
      const used = this.#totalsOf(measure).get(request.namespace) ?? 0;
      if (used + growth <= measure.max) continue;
      throw forbidden(
        request.type,
        nameOf(attributes),
        `exceeded the limit of namespace ${request.namespace} for its ${measure.what}: used ${used}, requested ${growth} more, limited to ${measure.max}`,
      );
    }
  }

  #totalsOf(measure: Measure): Map<string, number> {
    let totals = this.#totals.get(measure);
    if (totals) return totals;
    totals = new Map();
    this.#totals.set(measure, totals);
    for (const stored of this.#store.list(measure.collection)) add(totals, measure, stored, 1);
    const counted = totals;
    this.#store.observe(measure.collection, (previous, current) => {
      if (previous) add(counted, measure, previous, -1);
      if (current) add(counted, measure, current, 1);
    });
    return totals;
  }
}

function add(
  totals: Map<string, number>,
  measure: Measure,
  { namespace, object }: StoredObject,
  sign: number,
): void {
  const total = (totals.get(namespace) ?? 0) + sign * measure.of(object);
  if (total > 0) totals.set(namespace, total);
  else totals.delete(namespace);
}
