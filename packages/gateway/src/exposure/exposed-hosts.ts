import { heldSince, type HostRoutes, HostTable, isStatusAlone, routesOf } from "@spry/exposure";
import { type ExposedHost } from "@spry/function";
import { type Change, type ObjectKey, type Service } from "@spry/kube";
import { type ExposureSources } from "./exposure-sources.ts";

export interface ExposedHostsOptions {
  /** Whether the platform issues certificates for Gateways that name none. */
  ownCertificates: boolean;
}

/** The hosts of APIRules, kept current by informers: many changes at once are one. */
export class ExposedHosts {
  readonly #options: ExposedHostsOptions;
  #sources: ExposureSources | undefined;
  #table = new HostTable([]);
  /** The APIRule that demands tokens of a Service's callers. */
  #guards = new Map<ObjectKey, ObjectKey>();
  #isPending = false;
  #unlisten: (() => void)[] = [];

  constructor(options: ExposedHostsOptions) {
    this.#options = options;
  }

  /** @param name in lower case, without a port */
  find(name: string): HostRoutes | undefined {
    return this.#table.find(name);
  }

  /** Since when a host belongs to its APIRule (RFC 3339); undefined: that is not recorded yet. */
  heldSince({ apiRule, host }: ExposedHost): string | undefined {
    const rule = this.#sources?.apiRules.get(apiRule);
    return rule && heldSince(rule, host);
  }

  /**
   * The APIRule by which a Service's callers need a token on some path; undefined if none does. Then the Service is not
   * called from outside by another host.
   */
  guardOf(service: ObjectKey): ObjectKey | undefined {
    return this.#guards.get(service);
  }

  /** From now on, the hosts of these; undefined: none. */
  use(sources: ExposureSources | undefined): void {
    for (const unlisten of this.#unlisten) unlisten();
    this.#sources = sources;
    const later = () => this.#later();
    this.#unlisten = sources
      ? [
          sources.apiRules.onChange((change) => {
            if (!isStatusAlone(change)) later();
          }),
          sources.gateways.onChange(later),
          sources.services.onChange((change) => {
            if (isRelevant(change)) later();
          }),
        ]
      : [];
    this.#refresh();
  }

  #later(): void {
    if (this.#isPending) return;
    this.#isPending = true;
    setImmediate(() => {
      this.#isPending = false;
      this.#refresh();
    });
  }

  #refresh(): void {
    const sources = this.#sources;
    const hosts = sources
      ? routesOf(
          sources.apiRules.list(),
          sources.services.list(),
          sources.gateways.list(),
          this.#options,
        )
      : [];
    this.#table = new HostTable(hosts);
    this.#guards = guardsOf(hosts);
  }
}

function guardsOf(hosts: readonly ExposedHost[]): Map<ObjectKey, ObjectKey> {
  const guards = new Map<ObjectKey, ObjectKey>();
  for (const { rules, apiRule } of hosts) {
    for (const { authentication, target } of rules) {
      if (authentication.kind === "none" || !target.exists) continue;
      guards.set(`${target.namespace}/${target.name}`, apiRule);
    }
  }
  return guards;
}

/** Services change often, most of them in ways that concern no host. */
function isRelevant(change: Change<Service>): boolean {
  if (change.type !== "updated") return true;
  const content = ({ spec, metadata }: Service) => JSON.stringify([spec, metadata.annotations]);
  return content(change.object) !== content(change.previous);
}
