import { type Subscription } from "@spry/function";
import { expect, test } from "vitest";
import { NamespaceLimit } from "./namespace-limit.ts";

const subscription = (name: string, second: number, namespace = "shop") =>
  ({
    metadata: { name, namespace, creationTimestamp: `2026-01-01T00:00:0${second}Z` },
    spec: {},
  }) as Subscription;

test("the oldest Subscriptions of a namespace are served; when one is deleted, the next is", () => {
  let all = [subscription("b", 2), subscription("c", 2), subscription("a", 1)];
  all.push(subscription("other", 9, "else"));
  const again: string[] = [];
  let changed = (_change: { type: "deleted"; object: Subscription }) => {};
  const cache = {
    list: () => all,
    onChange: (listener: (change: never) => void) => {
      changed = listener as typeof changed;
      return () => {};
    },
  };
  const limit = new NamespaceLimit(cache as never, (key) => again.push(key), 2);
  const refused = () =>
    all.filter((each) => limit.problemOf(each)).map((each) => each.metadata.name);
  expect(refused()).toEqual(["c"]);
  expect(limit.problemOf(subscription("c", 2))).toBe(
    "namespace shop has more than 2 Subscriptions: only the oldest 2 are served; delete others",
  );
  const [gone] = all;
  all = all.slice(1);
  if (gone) changed({ type: "deleted", object: gone });
  expect(again).toEqual(["shop/c"]);
  expect(refused()).toEqual([]);
});
