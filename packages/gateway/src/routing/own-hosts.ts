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

/**
 * Hosts of Knative that do not say by their form what they stand for: those of Routes in the domains of `config-domain`,
 * and those of DomainMappings that have been granted.
 */
export class OwnHosts {
  readonly #keys = new Map<string, Map<string, ObjectKey>>();
  readonly #hosts = new Map<string, ReadonlyMap<string, ObjectKey>>();

  constructor({ routes, domainMappings }: OwnHostSources) {
    routes.onChange(({ type, object }) =>
      this.#changed(`route ${keyOf(object)}`, type === "deleted" ? new Map() : hostsOf(object)),
    );
    domainMappings.onChange(({ type, object }) =>
      this.#changed(`mapping ${keyOf(object)}`, type === "deleted" ? new Map() : mappedBy(object)),
    );
  }

  /** What the host stands for, as `namespace/name`; the authority of a request, perhaps with its port. */
  find(authority: string): ObjectKey | undefined {
    if (this.#keys.size === 0) return undefined;
    const host = authority.toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
    return this.#keys.get(host)?.values().next().value;
  }

  #changed(source: string, after: ReadonlyMap<string, ObjectKey>): void {
    const before = this.#hosts.get(source) ?? new Map<string, ObjectKey>();
    for (const host of before.keys()) {
      if (after.has(host)) continue;
      const sources = this.#keys.get(host);
      sources?.delete(source);
      if (sources?.size === 0) this.#keys.delete(host);
    }
    for (const [host, key] of after) {
      const sources = this.#keys.get(host) ?? new Map<string, ObjectKey>();
      this.#keys.set(host, sources.set(source, key));
    }
    if (after.size > 0) this.#hosts.set(source, after);
    else this.#hosts.delete(source);
  }
}

/** Those of the Route and of its tags, if their form says nothing. */
function hostsOf({ metadata, status }: RouteObject): Map<string, ObjectKey> {
  const { namespace, name = "" } = metadata;
  const hosts = new Map<string, ObjectKey>();
  const add = (url: string | undefined, key: ObjectKey) => {
    const host = url && URL.canParse(url) ? new URL(url).hostname : "";
    if (host !== "" && !parseHost(host)) hosts.set(host, key);
  };
  add(status?.url, `${namespace}/${name}`);
  for (const { tag, url } of status?.traffic ?? [])
    if (tag) add(url, `${namespace}/${knativeNames.tagged(tag, name)}`);
  return hosts;
}

function mappedBy({ metadata, spec, status }: DomainMapping): Map<string, ObjectKey> {
  const { name = "", namespace } = metadata;
  const { domainClaimed, referenceResolved } = domainMappingConditions;
  const isGranted = [domainClaimed, referenceResolved].every((type) =>
    isConditionTrue(status?.conditions, type),
  );
  return new Map(isGranted && !parseHost(name) ? [[name, `${namespace}/${spec.ref.name}`]] : []);
}
