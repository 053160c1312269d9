import {
  type DomainMapping,
  domainMappingConditions,
  knativeNames,
  type Route as RouteObject,
} from "@spry/function";
import { type Informer, isConditionTrue, keyOf, type ObjectKey } from "@spry/kube";
import { parseHost } from "./host.ts";

export interface OwnHostSources {
  routes: Informer<RouteObject>;
  domainMappings: Informer<DomainMapping>;
}

/** What a host stands for, and since when. */
export interface OwnHost {
  /** `namespace/name`. */
  key: ObjectKey;
  /** When the object was created that names it. */
  createdAt: string;
}

/**
 * Hosts of Knative that do not say by their form what they stand for: those of Routes in the domains of `config-domain`,
 * and those of DomainMappings that have been granted.
 */
export class OwnHosts {
  readonly #keys = new Map<string, Map<string, OwnHost>>();
  readonly #hosts = new Map<string, ReadonlyMap<string, OwnHost>>();

  constructor({ routes, domainMappings }: OwnHostSources) {
    routes.onChange(({ type, object }) =>
      this.#changed(`route ${keyOf(object)}`, type === "deleted" ? new Map() : hostsOf(object)),
    );
    domainMappings.onChange(({ type, object }) =>
      this.#changed(`mapping ${keyOf(object)}`, type === "deleted" ? new Map() : mappedBy(object)),
    );
  }

  /** What the host stands for by the oldest object that names it; the authority of a request, perhaps with its port. */
  find(authority: string): OwnHost | undefined {
    if (this.#keys.size === 0) return undefined;
    const host = authority.toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
    let oldest: OwnHost | undefined;
    for (const each of this.#keys.get(host)?.values() ?? [])
      if (!oldest || each.createdAt < oldest.createdAt) oldest = each;
    return oldest;
  }

  #changed(source: string, after: ReadonlyMap<string, OwnHost>): void {
    const before = this.#hosts.get(source) ?? new Map<string, OwnHost>();
    for (const host of before.keys()) {
      if (after.has(host)) continue;
      const sources = this.#keys.get(host);
      sources?.delete(source);
      if (sources?.size === 0) this.#keys.delete(host);
    }
    for (const [host, own] of after) {
      const sources = this.#keys.get(host) ?? new Map<string, OwnHost>();
      this.#keys.set(host, sources.set(source, own));
    }
    if (after.size > 0) this.#hosts.set(source, after);
    else this.#hosts.delete(source);
  }
}

/** Those of the Route and of its tags, if their form says nothing. */
function hostsOf({ metadata, status }: RouteObject): Map<string, OwnHost> {
  const { namespace, name = "", creationTimestamp: createdAt = "" } = metadata;
  const hosts = new Map<string, OwnHost>();
  const add = (url: string | undefined, key: ObjectKey) => {
    const host = url && URL.canParse(url) ? new URL(url).hostname : "";
    if (host !== "" && !parseHost(host)) hosts.set(host, { key, createdAt });
  };
  add(status?.url, `${namespace}/${name}`);
  for (const { tag, url } of status?.traffic ?? [])
    if (tag) add(url, `${namespace}/${knativeNames.tagged(tag, name)}`);
  return hosts;
}

function mappedBy({ metadata, spec, status }: DomainMapping): Map<string, OwnHost> {
  const { name = "", namespace, creationTimestamp: createdAt = "" } = metadata;
  const { domainClaimed, referenceResolved } = domainMappingConditions;
  const isGranted = [domainClaimed, referenceResolved].every((type) =>
    isConditionTrue(status?.conditions, type),
  );
  const key = `${namespace}/${spec.ref.name}`;
  return new Map(isGranted && !parseHost(name) ? [[name, { key, createdAt }]] : []);
}
