import { describe, expect, test } from "vitest";
import { builtin, type Schema } from "../schema/schema.ts";
import { applyStrategicMergePatch } from "./strategic-merge.ts";

const podSpec = builtin.definitions["io.k8s.api.core.v1.PodSpec"] as Schema;
const patch = (original: object, change: object) =>
  applyStrategicMergePatch(
    original as Record<string, unknown>,
    change as Record<string, unknown>,
    podSpec,
  );

describe("a strategic merge patch", () => {
  test.each([
    [
      "merges containers by name",
      { containers: [{ name: "a", image: "1" }, { name: "b" }] },
      { containers: [{ name: "a", tty: true }] },
      { containers: [{ name: "a", image: "1", tty: true }, { name: "b" }] },
    ],
    [
      "adds what is new before what is there",
      { containers: [{ name: "a" }] },
      { containers: [{ name: "b" }] },
      { containers: [{ name: "b" }, { name: "a" }] },
    ],
    [
      "removes an item that it names",
      { containers: [{ name: "a" }, { name: "b" }] },
      { containers: [{ $patch: "delete", name: "a" }] },
      { containers: [{ name: "b" }] },
    ],
    [
      "replaces a list when told to",
      { containers: [{ name: "a" }] },
      { containers: [{ name: "b" }, { $patch: "replace" }] },
      { containers: [{ name: "b" }] },
    ],
    [
      "replaces an object when told to",
      { nodeSelector: { a: "1" } },
      { nodeSelector: { $patch: "replace", b: "2" } },
      { nodeSelector: { b: "2" } },
    ],
    [
      "removes what is null",
      { hostNetwork: true, dnsPolicy: "Default" },
      { hostNetwork: null },
      { dnsPolicy: "Default" },
    ],
    [
      "orders items as told, others where they stood",
      { containers: [{ name: "a" }, { name: "b" }, { name: "x" }] },
      {
        "$setElementOrder/containers": [{ name: "b" }, { name: "a" }],
        containers: [{ name: "a", image: "1" }],
      },
      { containers: [{ name: "b" }, { name: "a", image: "1" }, { name: "x" }] },
    ],
    [
      "replaces lists without a merge key",
      { containers: [{ name: "a", command: ["x", "y"] }] },
      { containers: [{ name: "a", command: ["z"] }] },
      { containers: [{ name: "a", command: ["z"] }] },
    ],
    [
      "keeps only the keys that it retains",
      { volumes: [{ name: "v", emptyDir: {} }] },
      { volumes: [{ $retainKeys: ["name", "secret"], name: "v", secret: { secretName: "s" } }] },
      { volumes: [{ name: "v", secret: { secretName: "s" } }] },
    ],
  ])("%s", (_, original, change, expected) => {
    const before = structuredClone(original);
    expect(patch(original, change)).toEqual(expected);
    expect(original).toEqual(before);
  });

  test("refuses an item without its key", () => {
    expect(() => patch({ containers: [] }, { containers: [{ image: "x" }] })).toThrow(
      "does not contain declared merge key: name",
    );
  });
});
