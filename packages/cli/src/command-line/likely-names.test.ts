import { expect, test } from "vitest";
import { hasLikely } from "./likely-names.ts";
import { createProgram } from "./program.ts";

const names = createProgram().commands.map((each) => each.name());

test.each(["depoly", "deplyo", "lgos", "invok", "describ", "rolback", "histroy", "unexpos"])(
  "%s is a slip of the fingers",
  (word) => {
    expect(hasLikely(word, names)).toBe(true);
  },
);

test.each([
  "undeploy",
  "unscale",
  "un-expose",
  "disinstall",
  "edit",
  "cron",
  "ps",
  "node",
  "abc",
  "",
])("nothing is suggested for %s", (word) => {
  expect(hasLikely(word, names)).toBe(false);
});

const coming = [
  "top",
  "stats",
  "requests",
  "docs",
  "login",
  "users",
  "service",
  "runs",
  "records",
  "types",
];
test.each(coming)("the name %s is free", (word) => {
  expect(names).not.toContain(word);
});
