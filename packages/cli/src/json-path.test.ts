import { expect, test } from "vitest";
import { renderJsonPath } from "./json-path.ts";

const object = {
  metadata: { name: "shop", labels: { "app.kubernetes.io/name": "x" } },
  status: {
    conditions: [
      { type: "Built", status: "True" },
      { type: "Running", status: "False" },
    ],
  },
};
test.each([
  ["{.metadata.name}", "shop"],
  [".metadata.name", "shop"],
  ["metadata.name", "shop"],
  ['name: {.metadata.name}{"\\n"}', "name: shop\n"],
  ['{.status.conditions[?(@.type=="Running")].status}', "False"],
  ["{.status.conditions[?(@.type!='Running')].status}", "True"],
  ["{.status.conditions[*].type}", "Built Running"],
  ["{.status.conditions[-1].type}", "Running"],
  [String.raw`{.metadata.labels.app\.kubernetes\.io/name}`, "x"],
  ["{.metadata['name']}", "shop"],
  ["{.metadata}", `{"labels":{"app.kubernetes.io/name":"x"},"name":"shop"}`],
  ["{.nothing.here}", ""],
])("%s is %j", (template, text) => expect(renderJsonPath(template, object)).toBe(text));
test("what is not supported is refused", () => {
  expect(() => renderJsonPath("{range .items[*]}", object)).toThrow("without its {end}");
  expect(() => renderJsonPath("{.a}{end}", object)).toThrow("{end} without a {range");
  expect(() => renderJsonPath("{.a[b]}", object)).toThrow("is not a path");
  expect(() => renderJsonPath("{.metadata.name", object)).toThrow("without its counterpart");
  expect(() => renderJsonPath("{.metadata.name}}", object)).toThrow("without its counterpart");
});
