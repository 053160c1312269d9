import { type ExposedHost } from "@spry/function";
import { createRuleMatcher, type RuleMatcher } from "./rule-matcher.ts";

export interface HostRoutes extends RuleMatcher {
  host: ExposedHost;
}

/** Exposed hosts by name: the exact one first, then the longest `*.` that covers it. */
export class HostTable {
  readonly #exact = new Map<string, HostRoutes>();
  readonly #below = new Map<string, HostRoutes>();

  constructor(hosts: Iterable<ExposedHost>) {
    for (const host of hosts) {
      const table = host.host.startsWith("*.") ? this.#below : this.#exact;
      table.set(host.host.replace(/^\*\./, ""), lazily(host));
    }
  }

  /** @param name in lower case, without a port */
  find(name: string): HostRoutes | undefined {
    const exact = this.#exact.get(name);
    if (exact || this.#below.size === 0) return exact;
    for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) {
      const found = this.#below.get(name.slice(dot + 1));
      if (found) return found;
    }
    return undefined;
  }
}

/** Most hosts get no request between two changes of the table; those that a change has left as they are keep theirs. */
function lazily(host: ExposedHost): HostRoutes {
  let routes = known.get(host);
  if (!routes) {
    let matcher: RuleMatcher | undefined;
    routes = {
      host,
      match: (method, path) => (matcher ??= createRuleMatcher(host.rules)).match(method, path),
    };
    known.set(host, routes);
  }
  return routes;
}

const known = new WeakMap<ExposedHost, HostRoutes>();
