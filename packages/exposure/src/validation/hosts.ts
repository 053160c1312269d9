import { type Failure, failure } from "./failure.ts";

const label = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const shortName = new RegExp(`^${label}$`);
const fullName = new RegExp(`^(?:\\*\\.)?(?:${label}\\.)+[a-z0-9]{2,63}$`);

/** One label: its domain is the Gateway's. */
export function isShortHost(host: string): boolean {
  return shortName.test(host);
}

/** A domain name, or `*.` and one (`internal/helpers/hosts.go` of the original). */
export function isFullHost(host: string): boolean {
  return host.length <= 255 && fullName.test(host);
}

/** Names that callers inside the cluster use for Services: no APIRule can take them. */
const internal = /(?:^|\.)(?:svc|cluster\.local)$/;
/** `<function>.<namespace>.localhost` and deeper are hosts of Functions and Knative Services. */
const ofFunctions = /(?:^|\.)[^.*]+\.[^.]+\.localhost$/;

/** Why the full name of a host cannot be taken by any APIRule; undefined if it may be taken. */
export function reservedHost(host: string): string | undefined {
  if (internal.test(host)) return "Host is reserved for Services inside the cluster";
  if (ofFunctions.test(host) || /^\*\.(?:[^.]+\.)?localhost$/.test(host))
    return "Host is reserved for Functions: only one label may precede .localhost";
  return undefined;
}

export function validateHosts(hosts: readonly string[] | undefined): Failure[] {
  if (!hosts || hosts.length === 0) return [failure("spec.hosts", "No hosts defined")];
  return hosts.flatMap((host, index) => {
    const path = `spec.hosts[${index}]`;
    if (!isShortHost(host) && !isFullHost(host))
      return [failure(path, "Host must be a valid FQDN or short host name")];
    if (hosts.indexOf(host) !== index) return [failure(path, "Host is listed twice")];
    const reserved = reservedHost(host);
    return reserved ? [failure(path, reserved)] : [];
  });
}
