import {
  createCorsDecider,
  createJwtCheck,
  fetchKeys,
  type HostRoutes,
  JwksCache,
  type KeySource,
} from "@spry/exposure";
import { type ExposedHost, type ExposedRule } from "@spry/function";
import { type Clock, type HostPort, OutboundGuard } from "@spry/kube";
import { type KeyReachSources, reachProblem } from "./key-reach.ts";

export interface ExposureOptions {
  /** The platform's own, where the Secret of certificates is. */
  namespace: string;
  /** Whether the platform issues certificates itself, for Gateways that name none. */
  ownCertificates: boolean;
  /** The operator's issuers of tokens on this machine. Keys are fetched from no other loopback address. Default none. */
  allowedLoopback?: readonly HostPort[];
  /** Trusted for issuers' keys in addition to the system's authorities, PEM. */
  issuerCa?: string;
  /**
   * Whether Functions answer at hosts of their own, `<function>.<namespace>.localhost` and `.svc`, over plain HTTP; true by
   * default. Where strangers reach the gateway, they would pass by what APIRules demand.
   */
  functionHosts?: boolean;
  /** The port of HTTPS in redirects; the one that it listens on by default. */
  publicHttpsPort?: number;
  handshakeTimeoutMs?: number;
}

/** What is known of a request to the host of an APIRule. */
export interface Exposed {
  readonly host: ExposedHost;
  readonly routes: HostRoutes;
  rule: ExposedRule | undefined;
  /** By CORS; in place of the Service's own, on each response. */
  responseHeaders: Readonly<Record<string, string>>;
  /** Set on the request, names in lower case. */
  requestHeaders: Readonly<Record<string, string>>;
  /** The subject of its token. */
  caller: string | undefined;
  /** Why it is refused, for the log alone. */
  reason: string | undefined;
}

/** CORS and tokens: what is kept between requests. */
export class AccessChecks {
  readonly keys: JwksCache;
  readonly jwt: ReturnType<typeof createJwtCheck>;
  readonly #cors = new WeakMap<ExposedHost, ReturnType<typeof createCorsDecider>>();

  /** `reach` has what belongs to tenants. */
  constructor(
    { allowedLoopback: allowed, issuerCa: ca }: ExposureOptions,
    reach: () => KeyReachSources,
    clock: Clock,
  ) {
    const fetch = ({ uri, tenant }: KeySource) =>
      fetchKeys(uri, {
        guard: new OutboundGuard({
          // Issuers run in private networks, too.
          allowPrivate: true,
          allowed,
          problemOf: (address, port) => reachProblem(reach(), tenant, address, port),
        }),
        ...(ca ? { ca } : {}),
      });
    this.keys = new JwksCache({ fetch, clock });
    this.jwt = createJwtCheck({ keys: this.keys, clock });
  }

  corsOf(host: ExposedHost): ReturnType<typeof createCorsDecider> {
    let decider = this.#cors.get(host);
    if (!decider) this.#cors.set(host, (decider = createCorsDecider(host.cors)));
    return decider;
  }
}
