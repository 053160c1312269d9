import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { clusterDomain } from "../../network/cluster-view.ts";
import { dnsServiceIp } from "../../network/pods/ruleset.ts";
import { type PodPlacement } from "../sandbox.ts";
import { bindMount, type OciMount } from "./oci-spec.ts";

/** In the directory of each Pod. */
export const nameFilesDir = "etc";

/** As many as the C library takes (resolv.conf(5)), which is also what Kubernetes allows. */
const maxNameServers = 3;
const files = ["hosts", "resolv.conf"];

export interface NamesOptions {
  pod: PodPlacement;
  ip: string;
  /** The machine's address for Pods with a network of their own; nothing where they share the machine's. */
  hostAddress?: string | undefined;
}

/** Writes a Pod's `/etc/hosts` and `/etc/resolv.conf`, as the kubelet does, below `dir`. */
export function writeNameFiles(dir: string, options: NamesOptions): void {
  const etc = path.join(dir, nameFilesDir);
  mkdirSync(etc, { recursive: true, mode: 0o700 });
  const texts: Record<string, string> = {
    hosts: hostsOf(options),
    "resolv.conf": resolvConfOf(options, machineResolvConf()),
  };
  for (const [name, text] of Object.entries(texts)) {
    const file = path.join(etc, name);
    writeFileSync(file, text);
    // Whatever this program's umask is.
    chmodSync(file, 0o644);
  }
}

export function nameMounts(dir: string): OciMount[] {
  return files.map((name) => bindMount(path.join(dir, "etc", name), `/etc/${name}`, false));
}

function machineResolvConf(): string {
  try {
    return readFileSync("/etc/resolv.conf", "utf8");
  } catch {
    return "";
  }
}

function hostsOf({ pod, ip, hostAddress }: NamesOptions): string {
  const { hostName = pod.name, subdomain, namespace, hostAliases = [] } = pod;
  const full = subdomain
    ? `${hostName}.${subdomain}.${namespace}.svc.${clusterDomain}\t${hostName}`
    : hostName;
  return [
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
    `${ip}\t${full}`,
    ...(hostAddress ? [`${hostAddress}\tregistry.spry.localhost`] : []),
    ...hostAliases.map((alias) => `${alias.ip}\t${alias.hostnames.join("\t")}`),
    "",
  ].join("\n");
}

/** The Pod's `dnsPolicy` and `dnsConfig` (`pkg/kubelet/network/dns/dns.go`). */
export function resolvConfOf({ pod, hostAddress }: NamesOptions, machine: string): string {
  const { policy = "ClusterFirst", config = {} } = pod.dns ?? {};
  const own = parse(machine);
  const isOwnNetwork = hostAddress !== undefined && !pod.hostNetwork;
  const usesCluster =
    hostAddress !== undefined &&
    (policy === "ClusterFirstWithHostNet" || (policy === "ClusterFirst" && isOwnNetwork));
  let base = own;
  if (policy === "None") base = { servers: [], searches: [], options: [] };
  else if (usesCluster)
    base = {
      servers: [dnsServiceIp],
      searches: [
        `${pod.namespace}.svc.${clusterDomain}`,
        `svc.${clusterDomain}`,
        clusterDomain,
        ...own.searches,
      ],
      options: ["ndots:5"],
    };
  // A name server on the machine's loopback address is out of a Pod's reach: ours asks it.
  else if (isOwnNetwork && own.servers.every((server) => /^(127\.|::1)/.test(server)))
    base = { ...own, servers: [dnsServiceIp] };
  const options = new Map(
    [
      ...base.options.map((option) => option.split(":") as [string, string?]),
      ...(config.options ?? []).map(({ name = "", value }) => [name, value] as [string, string?]),
    ].map(([name, value]) => [name, value === undefined ? name : `${name}:${value}`]),
  );
  const unique = (all: string[]) => [...new Set(all)];
  const servers = unique([...base.servers, ...(config.nameservers ?? [])]).slice(0, maxNameServers);
  const searches = unique([...base.searches, ...(config.searches ?? [])]);
  return [
    ...(searches.length > 0 ? [`search ${searches.join(" ")}`] : []),
    ...servers.map((server) => `nameserver ${server}`),
    ...(options.size > 0 ? [`options ${[...options.values()].join(" ")}`] : []),
    "",
  ].join("\n");
}

function parse(text: string): { servers: string[]; searches: string[]; options: string[] } {
  const words = (keyword: string) =>
    [...text.matchAll(new RegExp(`^\\s*${keyword}[ \\t]+(.*)$`, "gm"))].map(([, rest = ""]) =>
      rest.trim().split(/\s+/),
    );
  return {
    servers: words("nameserver").flatMap(([server = ""]) => server),
    // The last line counts.
    searches: words("(?:search|domain)").at(-1)?.slice() ?? [],
    options: words("options").flat(),
  };
}
