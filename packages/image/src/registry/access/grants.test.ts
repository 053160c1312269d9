import { expect, test } from "vitest";
import { type Action, allows, type Grant, mayMoveTags } from "./grants.ts";

const build: Grant = {
  for: "build",
  namespace: "shop",
  uid: "1",
  function: "hello",
  job: { name: "hello-build", uid: "2" },
  expiresAt: 0,
  base: "shop/base",
};
const grants: Record<string, Grant> = {
  platform: { for: "platform" },
  node: { for: "node" },
  shop: { for: "namespace", namespace: "shop", uid: "1" },
  // `a-b/c` and `a/b-c` were once one name.
  a: { for: "namespace", namespace: "a", uid: "1" },
  // The platform's own repositories are not a namespace's, whatever that is called.
  spry: { for: "namespace", namespace: "spry", uid: "1" },
  build,
  "build for a stranger's base": { ...build, base: "bank/base" },
};

const all: Action[] = ["pull", "push", "delete"];
test.each<[grant: string, repository: string, may: Action[]]>([
  ["platform", "shop/hello", all],
  ["platform", "spry/nodejs24", all],
  ["node", "spry/nodejs24", ["pull"]],
  ["node", "shop/hello", []],
  ["shop", "shop/hello", ["pull", "push"]],
  ["shop", "shop/deeper/still", ["pull", "push"]],
  ["shop", "shop/dependencies.cache/nodejs24", ["pull"]],
  ["shop", "spry/nodejs24", ["pull"]],
  ["shop", "shop", []],
  ["shop", "shopper/hello", []],
  ["shop", "shop-hello", []],
  ["shop", "bank/hello", []],
  ["shop", "bank/shop/hello", []],
  ["shop", "bank/dependencies.cache/nodejs24", []],
  ["shop", "spry-cache/nodejs24", []],
  ["a", "a/b-c", ["pull", "push"]],
  ["a", "a-b/c", []],
  ["a", "a-b-c", []],
  ["spry", "spry/nodejs24", ["pull"]],
  ["spry", "spry.namespace/hello", ["pull", "push"]],
  ["build", "shop/hello", ["pull", "push"]],
  ["build", "shop/dependencies.cache/nodejs24", ["pull", "push"]],
  ["build", "spry/nodejs24", ["pull"]],
  ["build", "shop/base", ["pull"]],
  ["build", "shop/other", []],
  ["build", "shop/hello/deeper", []],
  ["build", "shop/hello-2", []],
  ["build", "bank/hello", []],
  ["build", "bank/dependencies.cache/nodejs24", []],
  ["build for a stranger's base", "bank/base", []],
])("the login of %s may do with %s: %s", (grant, repository, may) => {
  const held = grants[grant];
  expect(held && all.filter((action) => allows(held, action, repository))).toEqual(may);
});

test("only builds may not move tags, and only those that others of their namespace rely on", () => {
  expect(mayMoveTags(build, "shop/hello")).toBe(true);
  expect(mayMoveTags(build, "shop/dependencies.cache/nodejs24")).toBe(false);
  expect(mayMoveTags({ for: "platform" }, "shop/dependencies.cache/nodejs24")).toBe(true);
});
