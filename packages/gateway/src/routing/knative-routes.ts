import {
  type Function,
  knativeAnnotations,
  knativeLabels,
  knativeNames,
  type Revision,
  type Route as RouteObject,
  type TrafficTarget,
} from "@spry/function";
import { type Change, type EndpointSlice, type Informer, keyOf, type ObjectKey } from "@spry/kube";
import { type Admission } from "../admission/admission.ts";
import { type Destination, type DestinationPolicy } from "../activation/destination.ts";
import { type Tally } from "../activation/tally.ts";
import { addressesOf, serviceOfSlice } from "./endpoints.ts";
import { pendingPolicy, type PolicySettings, revisionPolicy } from "./revision-policy.ts";
import { type Route, type Weighted } from "./route.ts";
import { TrafficSplit } from "./traffic-split.ts";

export interface KnativeSources {
  routes: Informer<RouteObject>;
  revisions: Informer<Revision>;
  /** Indexed by `service`. */
  slices: Informer<EndpointSlice>;
  functions: Informer<Function>;
}

export interface KnativeRoutesOptions extends PolicySettings {
  createDestination(key: ObjectKey, policy: DestinationPolicy, tally?: Tally): Destination;
  /** Hard limits that are kept with other gateways; undefined where this is the only one. */
  admission(): Pick<Admission, "place" | "reservationsOf"> | undefined;
  /** The tally of a Revision's requests, the same whenever it is asked for. */
  tallyOf(revision: ObjectKey): Tally;
  /** The Revision has been deleted. */
  forget(revision: ObjectKey): void;
  /** There is something new to be found under a host's key. */
  appeared(key: ObjectKey): void;
}

interface KnativeRoute extends Route {
  /** Equal for equal destinations and shares: a split goes on where it is as long as this stays. */
  readonly signature: string;
}

/** What a Route object leads to. */
interface Entry {
  main: KnativeRoute;
  tags: Map<ObjectKey, KnativeRoute>;
  revisions: Set<ObjectKey>;
  /** Where requests wait while the Route has no traffic yet. */
  pending: Destination | undefined;
}

interface UsedRevision {
  destination: Destination;
  service: ObjectKey;
  /** Routes that name it. */
  users: number;
}

/**
 * Routes of Knative: from the `status.traffic` of a Route to the Pods of Revisions, by the EndpointSlices of their
 * private Services (ADR 0018). A tag is `<tag>-<route>`, a route of its own.
 */
export class KnativeRoutes {
  readonly #sources: KnativeSources;
  readonly #options: KnativeRoutesOptions;
  readonly #entries = new Map<ObjectKey, Entry>();
  readonly #tags = new Map<ObjectKey, KnativeRoute>();
  readonly #revisions = new Map<ObjectKey, UsedRevision>();
  /** From a private Service to its Revision. */
  readonly #owners = new Map<ObjectKey, ObjectKey>();

  constructor(sources: KnativeSources, options: KnativeRoutesOptions) {
    this.#sources = sources;
    this.#options = options;
    sources.routes.onChange(({ object }) => this.#routeChanged(keyOf(object)));
    sources.revisions.onChange((change) => this.#revisionChanged(change));
    sources.slices.onChange((change) => this.#slicesChanged(change));
    sources.functions.onChange(({ object }) => this.#entries.get(keyOf(object))?.pending?.review());
  }

  /** By `namespace/name` or `namespace/tag-name`; a Route's own name comes first. */
  find(key: ObjectKey): Route | undefined {
    return this.#entries.get(key)?.main ?? this.#tags.get(key);
  }

  revision(key: ObjectKey): Destination | undefined {
    return this.#revisions.get(key)?.destination;
  }

  /** Every Pod of a Revision with a hard limit. */
  *limitedPods(): Generator<{ revision: ObjectKey; pod: string; concurrency: number }> {
    for (const [revision, { destination, service }] of this.#revisions) {
      const { concurrency, isExact } = destination.policy;
      if (!isExact || concurrency === undefined) continue;
      const slices = this.#sources.slices.byIndex("service", service);
      const { ready, ending } = addressesOf(slices, portOf);
      for (const pod of [...ready, ...ending]) yield { revision, pod, concurrency };
    }
  }

  /** Where requests to Revisions with a hard limit go has changed, for all or for one of them. */
  admissionChanged(revision?: ObjectKey): void {
    for (const key of revision === undefined ? this.#revisions.keys() : [revision]) {
      const used = this.#revisions.get(key);
      if (!used || used.destination.policy.isExact === false) continue;
      this.#refresh(key);
      if (revision === undefined) used.destination.reroute();
    }
  }

  close(): void {
    for (const { pending } of this.#entries.values()) pending?.close();
    for (const { destination } of this.#revisions.values()) destination.close();
    for (const map of [this.#entries, this.#tags, this.#revisions, this.#owners]) map.clear();
  }

  #routeChanged(key: ObjectKey): void {
    const before = this.#entries.get(key);
    const object = this.#sources.routes.get(key);
    const after = object && this.#entryOf(key, object, before);
    if (after) this.#entries.set(key, after);
    else this.#entries.delete(key);
    for (const [host, route] of before?.tags ?? []) {
      if (this.#tags.get(host) === route) this.#tags.delete(host);
    }
    for (const [host, route] of after?.tags ?? []) this.#tags.set(host, route);
    for (const revision of before?.revisions ?? []) this.#unuse(revision);
    if (before?.pending !== after?.pending) before?.pending?.close();
    for (const host of [key, ...(after?.tags.keys() ?? [])]) this.#options.appeared(host);
  }

  #entryOf(key: ObjectKey, object: RouteObject, before: Entry | undefined): Entry {
    const namespace = key.slice(0, key.indexOf("/"));
    const traffic = object.status?.traffic ?? [];
    const isClusterLocal = object.metadata.labels?.[knativeLabels.visibility] === "cluster-local";
    const revisions = new Set(traffic.flatMap(({ revisionName = "" }) => revisionName || []));
    for (const revision of revisions) this.#use(`${namespace}/${revision}`);
    const targetOf = ({ revisionName }: TrafficTarget) =>
      this.#revisions.get(`${namespace}/${revisionName}`)?.destination;
    const weighted = traffic.flatMap((target): Weighted<Destination>[] => {
      const destination = targetOf(target);
      return destination ? [{ target: destination, weight: target.percent ?? 0 }] : [];
    });
    const [first, ...rest] = weighted;
    const pending = first ? undefined : (before?.pending ?? this.#pending(key));
    const routeTo = (
      targets: readonly [Weighted<Destination>, ...Weighted<Destination>[]],
      previous: KnativeRoute | undefined,
      byTag?: ReadonlyMap<string, Destination>,
    ): KnativeRoute => {
      const shares = targets.map(({ target, weight }) => `${target.key}=${weight}`);
      const named = [...(byTag ?? [])].map(([tag, target]) => `${tag}:${target.key}`);
      const signature = [isClusterLocal, ...shares, ...named].join();
      if (previous?.signature === signature) return previous;
      const split = new TrafficSplit(targets);
      return {
        key,
        isKnative: true,
        isClusterLocal,
        signature,
        choose: () => split.next(),
        chooseTagged: (tag) => byTag?.get(tag),
        leadsTo: (destination) =>
          targets.some(({ target }) => target === destination) ||
          [...(byTag?.values() ?? [])].includes(destination),
      };
    };
    const tags = new Map<ObjectKey, KnativeRoute>();
    const isByHeader = object.status?.annotations?.[knativeAnnotations.tagHeader] === "true";
    const byTag = new Map<string, Destination>();
    const name = key.slice(namespace.length + 1);
    for (const target of traffic) {
      const destination = target.tag ? targetOf(target) : undefined;
      if (!target.tag || !destination) continue;
      if (isByHeader) byTag.set(target.tag, destination);
      const host = `${namespace}/${knativeNames.tagged(target.tag, name)}`;
      tags.set(host, routeTo([{ target: destination, weight: 1 }], before?.tags.get(host)));
    }
    const main = routeTo(
      pending ? [{ target: pending, weight: 1 }] : [first as Weighted<Destination>, ...rest],
      before?.main,
      byTag,
    );
    return {
      main,
      tags,
      pending,
      revisions: new Set([...revisions].map((revision) => `${namespace}/${revision}`)),
    };
  }

  #pending(key: ObjectKey): Destination {
    const { routes, functions } = this.#sources;
    const policy = pendingPolicy(
      key,
      () => ({ route: routes.get(key), fn: functions.get(key) }),
      this.#options,
    );
    return this.#options.createDestination(key, policy);
  }

  #use(key: ObjectKey): void {
    const used = this.#revisions.get(key);
    if (used) {
      used.users++;
      return;
    }
    const [namespace = "", name = ""] = key.split("/");
    const service = `${namespace}/${knativeNames.privateService(name)}`;
    const tally = this.#options.tallyOf(key);
    const destination = this.#options.createDestination(key, this.#policyOf(key), tally);
    this.#revisions.set(key, { destination, service, users: 1 });
    this.#owners.set(service, key);
    this.#refresh(key);
  }

  #unuse(key: ObjectKey): void {
    const used = this.#revisions.get(key);
    if (!used || --used.users > 0) return;
    this.#revisions.delete(key);
    this.#owners.delete(used.service);
    used.destination.close();
    if (!this.#sources.revisions.get(key)) this.#options.forget(key);
  }

  #policyOf(key: ObjectKey): DestinationPolicy {
    return revisionPolicy(key, () => this.#sources.revisions.get(key), this.#options);
  }

  #revisionChanged({ type, object }: Change<Revision>): void {
    const key = keyOf(object);
    const used = this.#revisions.get(key);
    if (!used) {
      if (type === "deleted") this.#options.forget(key);
      return;
    }
    used.destination.policy = this.#policyOf(key);
    if (this.#options.admission()) this.#refresh(key);
    used.destination.review();
  }

  #slicesChanged(change: Change<EndpointSlice>): void {
    const before = change.type === "updated" ? serviceOfSlice(change.previous) : [];
    for (const service of new Set([...before, ...serviceOfSlice(change.object)])) {
      const revision = this.#owners.get(service);
      if (revision !== undefined) this.#refresh(revision);
    }
  }

  #refresh(key: ObjectKey): void {
    const used = this.#revisions.get(key);
    if (!used) return;
    const slices = this.#sources.slices.byIndex("service", used.service);
    // A Pod that is terminating gets nothing new: a request would rather start another one than be lost with it.
    const isH2c = slices.some(({ ports }) => ports?.some(speaksH2c));
    const { ready } = addressesOf(slices, portOf);
    const { destination } = used;
    const admission = this.#options.admission();
    const isKnown = this.#sources.revisions.get(key) !== undefined;
    if (!admission || (isKnown && destination.policy.isExact === false))
      return destination.update(ready, { isH2c });
    const { place } = admission;
    destination.reserve(admission.reservationsOf(key));
    // Its limit is not known before it is.
    if (!isKnown || place === undefined) destination.update([]);
    else if (place === "own") destination.update(ready, { isH2c });
    else destination.update([place.peer], { isH2c, isPeer: true });
  }
}

const speaksH2c = ({ name, appProtocol }: NonNullable<EndpointSlice["ports"]>[number]) =>
  appProtocol === "kubernetes.io/h2c" || name === "http2" || name === "h2c";

/** The port that requests go to: the private Service's first one where it has several. */
function portOf({ ports }: EndpointSlice): number | undefined {
  // An API server writes `null` for a slice without endpoints.
  return (ports?.find(({ name }) => name === "http" || name === "http1") ?? ports?.[0])?.port;
}
