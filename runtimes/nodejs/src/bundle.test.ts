import { expect, test } from "vitest";
import { bundle } from "./testing/running-function.ts";

test("is ASCII, comments included: V8 would keep all of it in two bytes a character", () => {
  expect(bundle?.match(/[^\0-\x7f]+/g)).toBeNull();
});
