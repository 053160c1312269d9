import { expect, test } from "vitest";
import { pathOf } from "./invoke.ts";

// As `new URL(text, "http://x/")` has path and query, except for `.` and `..`, which a Function may want to see.
test.each([
  "/",
  "/?name=Jürgen",
  "/?q=two words",
  "/größe/✓?a=😀&b=%20+c",
  '/a b/"<x>"`{y}?"<x>"`{y}\'|^',
  "/a^b",
  "/x?a#fragment",
  "/%zz?%",
  "/?a=b?c=d",
  "/100%?50%",
])("%s is sent as a browser sends it", (text) => {
  const { pathname, search } = new URL(text, "http://x/");
  expect(pathOf(text)).toBe(pathname + search);
});

test("a query alone is one of /", () => {
  expect(pathOf("?name=you")).toBe("/?name=you");
  expect(pathOf("name")).toBe("/name");
});
