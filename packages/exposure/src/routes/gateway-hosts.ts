import { type GatewayServer, type IstioGateway } from "@spry/function";
import { isShortHost } from "../validation/hosts.ts";

/** The host that a server of a Gateway names, without the namespace in front (`ns/*.example.com`). */
function hostOf(entry: string): string {
  return entry.slice(entry.indexOf("/") + 1).toLowerCase();
}

/** Whether APIRules of a namespace may use this entry: any by default, `./` those of the Gateway's own, `ns/` those of ns. */
function isFor(entry: string, gateway: IstioGateway, namespace: string): boolean {
  const slash = entry.indexOf("/");
  if (slash < 0) return true;
  const named = entry.slice(0, slash);
  return named === "*" || (named === "." ? gateway.metadata.namespace : named) === namespace;
}

const serversOf = (gateway: IstioGateway): GatewayServer[] => gateway.spec?.servers ?? [];

/**
 * The domain of short hosts: the one `*.<domain>` that every server of the Gateway has; undefined if they differ
 * (`hasSingleHostDefinitionWithCorrectPrefix` of the original).
 */
export function gatewayDomain(gateway: IstioGateway): string | undefined {
  let known = domains.get(gateway);
  if (known === undefined) domains.set(gateway, (known = domainOf(gateway) ?? null));
  return known ?? undefined;
}

const domains = new WeakMap<IstioGateway, string | null>();

function domainOf(gateway: IstioGateway): string | undefined {
  const hosts = new Set(serversOf(gateway).flatMap((server) => (server.hosts ?? []).map(hostOf)));
  const [only = ""] = hosts;
  return hosts.size === 1 && only.startsWith("*.") ? only.slice(2) : undefined;
}

/** The full name of an APIRule's host, in lower case; undefined if it is short and the Gateway has no domain for it. */
export function fullHost(host: string, gateway: IstioGateway): string | undefined {
  const name = host.toLowerCase();
  if (!isShortHost(name)) return name;
  const domain = gatewayDomain(gateway);
  return domain === undefined ? undefined : `${name}.${domain}`;
}

/** The servers of a Gateway that serve this host for APIRules of this namespace, the most exact first. */
export function serversFor(
  gateway: IstioGateway,
  host: string,
  namespace: string,
): GatewayServer[] {
  const length = (server: GatewayServer) =>
    Math.max(
      ...(server.hosts ?? [])
        .filter((entry) => isFor(entry, gateway, namespace) && covers(hostOf(entry), host))
        .map((entry) => hostOf(entry).length),
      0,
    );
  return serversOf(gateway)
    .filter((server) => length(server) > 0)
    .sort((a, b) => length(b) - length(a));
}

/** Whether a Gateway's host includes this one: the same, or a `*` in front of what it ends in. */
function covers(entry: string, host: string): boolean {
  return (
    entry === "*" || entry === host || (entry.startsWith("*.") && host.endsWith(entry.slice(1)))
  );
}

/** Whether the server takes HTTPS as the gateway can: modes that ask clients for certificates would be less safe than named. */
export function isHttps(server: GatewayServer): boolean {
  return isAnyHttps(server) && tlsMode(server) === "SIMPLE";
}

export function isAnyHttps({ port }: GatewayServer): boolean {
  return port?.protocol?.toUpperCase() === "HTTPS";
}

export function tlsMode({ tls }: GatewayServer): string {
  return tls?.mode ?? "SIMPLE";
}

export function isHttp({ port }: GatewayServer): boolean {
  return ["HTTP", "HTTP2", "GRPC"].includes(port?.protocol?.toUpperCase() ?? "");
}
