import { childLabelsOf, type Function, names, podSelectorOf } from "@spry/function";
import { type Service } from "@spry/kube";
import { type DesiredChild } from "../../children.ts";

/**
 * Port 80 of the Function's name leads to port 8080 of its Pods: all that others may rely on. Without a selector it leads to
 * the gateway, by an EndpointSlice that the serving room writes.
 */
export function desiredService(
  fn: Function,
  { hasSelector }: { hasSelector: boolean } = { hasSelector: true },
): Service & DesiredChild {
  const { name = "", namespace = "" } = fn.metadata;
  return {
    metadata: {
      name: names.service(name),
      namespace,
      labels: childLabelsOf(fn),
      annotations: {
        "prometheus.io/port": "8080",
        "prometheus.io/path": "/metrics",
        "prometheus.io/scrape": "true",
      },
    },
    spec: {
      type: "ClusterIP",
      ...(hasSelector ? { selector: podSelectorOf(fn) } : {}),
      ports: [{ name: "http", port: 80, targetPort: 8080, protocol: "TCP" }],
    },
  };
}
