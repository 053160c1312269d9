import { runInThisContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { parameterNames } from "./parameter-names.ts";

/** As sources have them: what compiles these tests must not rewrite them. */
const rows: [source: string, names: string[]][] = [
  ["function (context, event) {}", ["context", "event"]],
  ["async function handler(context, callback) { f(a, b); }", ["context", "callback"]],
  ["(context) => ({ status: 200 })", ["context"]],
  ["async context => context", ["context"]],
  ["() => f(a)", []],
  ["async () => (a, b)", []],
  ["function () { return (a, b); }", []],
  ["(event = {}, context = { f: (x, y) => x }) => event", ["event", "context"]],
  ["({ request, response }) => request", ["{ request, response }"]],
  ["({ body }, context) => body", ["{ body }", "context"]],
  ["([first], second) => first", ["", "second"]],
  ["(...all) => all", ["all"]],
  ["(/* the ( */ context, // , and\n event) => event", ["context", "event"]],
  ["$context => $context", ["$context"]],
];

describe("the names of parameters", () => {
  test.each(rows)("of %s", (source, names) => {
    expect(parameterNames(runInThisContext(`(${source})`))).toEqual(names);
  });

  test("of a method", () => {
    const object = runInThisContext("({ async handler(context, event) {} })") as {
      handler: unknown;
    };
    expect(parameterNames(object.handler)).toEqual(["context", "event"]);
  });

  test.each([
    ["a bound function", Date.prototype.getTime.bind(new Date(0))],
    ["no function", { length: 1 }],
    ["a built-in function", Math.max],
  ])("of %s are not known", (_name, callable) => {
    expect(parameterNames(callable)).toEqual([]);
  });
});
