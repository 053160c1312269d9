import { quantityValue } from "@spry/kube";
import { type Metrics, type Usage } from "./metrics.ts";

const columns = [
  { name: "Name", type: "string", format: "name", description: "Name of the resource" },
  { name: "cpu", type: "string", format: "quantity", description: "" },
  { name: "memory", type: "string", format: "quantity", description: "" },
  { name: "Window", type: "string", format: "duration", description: "" },
];

/** `meta/v1 Table` of metrics, with the columns of metrics-server. */
export function metricsTable(metrics: readonly Metrics[], version: string): object {
  return {
    kind: "Table",
    apiVersion: `meta.k8s.io/${version}`,
    metadata: {},
    columnDefinitions: columns.map((column) => ({ ...column, priority: 0 })),
    rows: metrics.map((each) => {
      const usages = each.usage ? [each.usage] : (each.containers ?? []).map(({ usage }) => usage);
      const sum = (of: keyof Usage) =>
        usages.reduce((total, usage) => total + quantityValue(usage[of]), 0);
      return {
        cells: [
          each.metadata.name,
          `${Math.ceil(sum("cpu") * 1000)}m`,
          `${Math.ceil(sum("memory") / 1024)}Ki`,
          each.window,
        ],
        object: {
          kind: "PartialObjectMetadata",
          apiVersion: `meta.k8s.io/${version}`,
          metadata: each.metadata,
        },
      };
    }),
  };
}
