import { type ResourceType } from "../resources/resource-type.ts";

const statusVerbs = ["get", "patch", "update"];
const proxyVerbs = ["create", "delete", "get", "patch", "update"];

/** As discovery names it; kind, group and version where they are not those of its resource. */
export interface Subresource {
  name: string;
  verbs: string[];
  kind?: string;
  group?: string;
  version?: string;
}

/** What is served below each object of the type. */
export function subresourcesOf(type: ResourceType): Subresource[] {
  const found: Subresource[] = [];
  if (type.hasStatus) found.push({ name: "status", verbs: statusVerbs });
  if (type.hasScale) {
    found.push({
      name: "scale",
      verbs: statusVerbs,
      group: "autoscaling",
      version: "v1",
      kind: "Scale",
    });
  }
  if (type.collection === "/pods") {
    found.push({ name: "binding", verbs: ["create"], kind: "Binding" });
    found.push({
      name: "eviction",
      verbs: ["create"],
      group: "policy",
      version: "v1",
      kind: "Eviction",
    });
    found.push({ name: "log", verbs: ["get"] });
    const streams = {
      attach: "PodAttachOptions",
      exec: "PodExecOptions",
      portforward: "PodPortForwardOptions",
    };
    for (const [name, kind] of Object.entries(streams))
      found.push({ name, verbs: ["create", "get"], kind });
  }
  const proxied = { "/pods": "Pod", "/services": "Service", "/nodes": "Node" }[type.collection];
  if (proxied) found.push({ name: "proxy", verbs: proxyVerbs, kind: `${proxied}ProxyOptions` });
  if (type.collection === "/serviceaccounts") {
    found.push({
      name: "token",
      verbs: ["create"],
      group: "authentication.k8s.io",
      version: "v1",
      kind: "TokenRequest",
    });
  }
  if (type.collection === "/namespaces") found.push({ name: "finalize", verbs: ["update"] });
  return found;
}
