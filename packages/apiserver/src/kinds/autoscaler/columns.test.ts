import { expect, test } from "vitest";
import { autoscalerColumns } from "./columns.ts";

const metric = { name: "queue" };
test.each([
  [
    "External, average",
    { external: { metric, target: { type: "AverageValue", averageValue: "5" } } },
    { external: { metric, current: { averageValue: "7" } } },
    "7/5 (avg)",
  ],
  [
    "External, as a whole",
    { external: { metric, target: { type: "Value", value: "5" } } },
    { external: { metric, current: { value: "12" } } },
    "12/5",
  ],
  [
    "Pods",
    { pods: { metric, target: { type: "AverageValue", averageValue: "5" } } },
    { pods: { metric, current: { averageValue: "500m" } } },
    "500m/5",
  ],
  [
    "Object, not measured yet",
    { object: { metric, target: { type: "Value", value: "5" } } },
    {},
    "<unknown>/5",
  ],
  [
    "Resource",
    { resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } },
    { resource: { name: "cpu", current: { averageUtilization: 12, averageValue: "12m" } } },
    "cpu: 12%/80%",
  ],
])("kubectl shows of a metric (%s) what is and what should be", (_, spec, current, shown) => {
  const autoscaler = {
    metadata: { name: "a" },
    spec: { metrics: [spec] },
    status: { currentMetrics: [current] },
  };
  const targets = autoscalerColumns.find(({ name }) => name === "Targets");
  expect(targets?.cell(autoscaler)).toBe(shown);
});
