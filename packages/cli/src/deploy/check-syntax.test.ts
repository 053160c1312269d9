import { expect, test } from "vitest";
import { formatProblem } from "./check-syntax.ts";

test("a line of code ends where the terminal does, so that the mark is below its place", () => {
  const text = `    retrun Response.json({ message: "${"x".repeat(80)}" });`;
  const problem = { file: "handler.ts", line: 5, column: 12, message: "Expected ;", text };
  expect(formatProblem(problem, 40)).toBe(
    `handler.ts:5:12: Expected ;\n  ${text.slice(0, 37)}…\n             ^`,
  );
  expect(formatProblem(problem)).toContain(text);
  // The mark alone would say nothing.
  expect(formatProblem({ ...problem, column: 60 }, 40)).toBe("handler.ts:5:60: Expected ;");
});
