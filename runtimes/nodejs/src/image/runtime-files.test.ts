import { expect, test } from "vitest";
import { runtimeFiles } from "../testing/running-function.ts";

test("is ASCII, comments included: V8 would keep all of it in two bytes a character", () => {
  const program = runtimeFiles.filter(({ path }) => /^[^/]+\.c?js$/.test(path));
  expect(program.map(({ path }) => path)).toEqual(["server.cjs", "runtime.js"]);
  for (const { content } of program) expect(content.toString().match(/[^\0-\x7f]+/g)).toBeNull();
});
