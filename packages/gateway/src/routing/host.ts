import { type ObjectKey } from "@spry/kube";

/** What a `Host` header stands for. */
export interface HostName {
  /** `namespace/name` of a Service or Route, or `namespace/tag-name`. */
  key: ObjectKey;
}

/**
 * What the hosts of Functions end in. All of them may come from anywhere: where a request comes from is what it was sent
 * to (`Passage.isExternal`), not what it says of itself.
 */
const suffixes = [".localhost", ".svc.cluster.local", ".svc"];
/** A DNS name is never longer. */
const maxHostLength = 253;

/**
 * Reads `<name>.<namespace>` with one of the suffixes above; undefined for other hosts. Case, port and a final dot do
 * not matter.
 */
export function parseHost(header: string): HostName | undefined {
  if (header.length > maxHostLength + ":65535".length) return undefined;
  const colon = header.indexOf(":");
  if (colon >= 0 && !/^\d{0,5}$/.test(header.slice(colon + 1))) return undefined;
  let host = (colon < 0 ? header : header.slice(0, colon)).toLowerCase();
  if (host.endsWith(".")) host = host.slice(0, -1);
  for (const suffix of suffixes) {
    if (!host.endsWith(suffix)) continue;
    const dot = host.indexOf(".");
    const namespace = host.slice(dot + 1, -suffix.length);
    const name = host.slice(0, dot);
    if (!isLabel(name) || !isLabel(namespace)) return undefined;
    return { key: `${namespace}/${name}` };
  }
  return undefined;
}

function isLabel(text: string): boolean {
  return /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(text);
}
