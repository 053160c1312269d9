import { expect, test } from "vitest";
import { workspaceMatcher } from "./workspace-patterns.ts";

test.each([
  { workspaces: ["packages/*"], folder: "packages/a", is: true },
  { workspaces: ["packages/*"], folder: "packages/a/b", is: false },
  { workspaces: ["./packages/*/"], folder: "packages/a", is: true },
  { workspaces: ["packages/**"], folder: "packages/a/b", is: true },
  { workspaces: ["**/fn"], folder: "apps/x/fn", is: true },
  { workspaces: ["apps/fn"], folder: "apps/fn", is: true },
  { workspaces: ["apps/fn-*"], folder: "apps/fn-one", is: true },
  { workspaces: ["apps/*", "!apps/old"], folder: "apps/old", is: false },
  { workspaces: { packages: ["apps/*"] }, folder: "apps/fn", is: true },
  { workspaces: ["**"], folder: "apps/node_modules/x", is: false },
  { workspaces: ["a.c"], folder: "abc", is: false },
  { workspaces: ["*".repeat(100)], folder: "a", is: false },
  { workspaces: "apps/*", folder: "apps/fn", is: false },
  { workspaces: null, folder: "apps/fn", is: false },
])("$workspaces and $folder: $is", ({ workspaces, folder, is }) => {
  expect(workspaceMatcher(workspaces)(folder)).toBe(is);
});
