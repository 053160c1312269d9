import { type Family, maps, nested, typed, written } from "./requests.ts";

/** Patches of every kind: operations that are none, pointers out of the document, growth by copies. */
export const patches: Family = (random) => {
  const pointer = () =>
    random.one(["", "/", "/data", "/data/k", "/data/-", "/metadata", "/metadata/finalizers", "/metadata/finalizers/-", `/metadata/finalizers/${random.one(["0", "1", "-1", "01", "4294967296", "9".repeat(40), "length", "1e1"])}`, "/__proto__/polluted", "/data/__proto__", "/constructor/prototype/polluted", "/toString", "data", "/data/~", "/data/~01", "/a".repeat(5000), "/metadata/name", "/kind"]); // prettier-ignore
  const value = () =>
    random.one<unknown>([null, 1, "v", [], {}, ["a/b"], { k: "v" }, { "": "" }, "x".repeat(100_000), 1e308]); // prettier-ignore
  const operation = () => ({
    op: random.one<unknown>(["add", "remove", "replace", "move", "copy", "test", "toString", "_get", "__proto__", null, 1]), // prettier-ignore
    path: random.one<unknown>([pointer(), pointer(), pointer(), pointer(), null, 1]),
    from: random.one<unknown>([pointer(), pointer(), undefined, {}]),
    ...(random.below(3) > 0 && { value: value() }),
  });
  const doubled = { op: "copy", from: "/metadata/finalizers", path: "/metadata/finalizers/-" };
  const deeper = [
    { op: "add", path: "/data/t", value: {} },
    { op: "move", from: "/metadata", path: "/data/t/m" },
    { op: "move", from: "/data/t", path: "/metadata" },
  ];
  const directive = () =>
    random.one<object>([{ $patch: random.one(["delete", "replace", "merge", "x"]) }, { $retainKeys: random.one<unknown>([1, ["k"], [{}]]) }, { "$setElementOrder/finalizers": ["a/b"], finalizers: ["c/d"] }, { "$deleteFromPrimitiveList/finalizers": random.one<unknown>([1, {}, ["a/b"]]) }, { ownerReferences: random.one<unknown>([[1], [null], [[]], { a: 1 }, [{ $patch: "delete" }], [{ uid: {} }]]) }, { managedFields: random.one<unknown>([[{}], [null], 1, []]) }, { labels: random.one<unknown>([1, null, { constructor: "x" }, []]) }]); // prettier-ignore
  const [type, body] = random.one<() => [string, unknown]>([
    () => ["json", Array.from({ length: 1 + random.below(4) }, operation)],
    () => ["json", Array.from({ length: 1 + random.below(4) }, operation)],
    () => ["json", [{ op: "add", path: "/metadata/finalizers", value: ["a/b"] }, ...Array.from({ length: random.one([5, 30, 9000]) }, () => doubled)]],
    () => ["json", Array.from({ length: 3000 }, () => deeper).flat()],
    () => ["json", Array.from({ length: 10_001 }, () => doubled)],
    () => ["json", random.one<unknown>([{}, null, 1, [null], [[]], ["add"]])],
    () => ["merge", { metadata: directive(), data: value(), [random.one(["constructor", "status", "kind"])]: value() }],
    () => ["strategic", random.one<unknown>([{ metadata: directive() }, directive(), { data: directive() }])],
    () => ["apply", { apiVersion: random.one<unknown>(["v1", "v1", { toString: 1 }, "", "a/b/c"]), kind: "ConfigMap", metadata: random.one<unknown>([1, [], null, {}, { name: { toString: 1 } }, directive()]), data: value() }],
  ])(); // prettier-ignore
  const mediaType = type === "apply" ? "apply-patch+yaml" : type === "strategic" ? "strategic-merge-patch+json" : `${type}-patch+json`; // prettier-ignore
  const query = type === "apply" ? "?fieldManager=m&force=true" : random.one(["", "?dryRun=All"]);
  const text = JSON.stringify(body);
  return [
    written({
      method: "PATCH",
      path: `${maps}/fuzz${query}`,
      headers: typed(`application/${mediaType}`),
      body: random.below(5) ? text : random.one([text.slice(1), nested(300), `${text},`]),
    }),
  ];
};
