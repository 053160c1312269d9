import { expect, test } from "vitest";
import { EncodingTurns } from "../http/encoding-turns.ts";
import { encodeList } from "./list.ts";
import { encodeProtobuf, type TypedObject } from "./protobuf.ts";

const item = (index: number, length: number) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: `c-${index}`, labels: { a: "ü" } },
  data: { text: "x".repeat(length) },
});
const lists: [string, TypedObject, object[]][] = [
  ["no items", { apiVersion: "v1", kind: "ConfigMapList" }, []],
  ["one item", { apiVersion: "v1", kind: "ConfigMapList" }, [item(0, 10)]],
  [
    "items that are made twice",
    { apiVersion: "v1", kind: "ConfigMapList" },
    Array.from({ length: 30 }, (_, index) => item(index, 100_000)),
  ],
  [
    "items of several sizes",
    { apiVersion: "v1", kind: "ConfigMapList" },
    [0, 1, 127, 128, 16_383, 16_384].map((length, index) => item(index, length)),
  ],
  [
    "metadata alone",
    { apiVersion: "meta.k8s.io/v1", kind: "PartialObjectMetadataList" },
    [{ kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: { name: "a" } }],
  ],
];

test.each(lists)("a list with %s is the same in pieces as at once", async (_, kind, items) => {
  const list = {
    ...kind,
    metadata: { resourceVersion: "7", continue: "x", remainingItemCount: 3 },
  };
  const at = (index: number) => JSON.stringify(items[index]);
  const head = { ...list, items: [] } as TypedObject;
  const { length, pieces } = await encodeList(
    head,
    { count: items.length, at },
    new EncodingTurns("anna"),
  );
  const whole = encodeProtobuf({ ...list, items } as TypedObject);
  const made = Buffer.concat([...pieces]);
  expect(length).toBe(whole.length);
  expect(made.equals(whole)).toBe(true);
});
