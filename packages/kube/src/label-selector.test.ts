import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  formatLabelSelector,
  type LabelRequirement,
  matchesLabels,
  parseLabelSelector,
  requirementsOf,
  selectorMatches,
} from "./label-selector.ts";

const labels = { app: "web", tier: "front", "example.com/size": "12", empty: "" };

describe("a label selector", () => {
  test.each([
    ["", true],
    ["app=web", true],
    ["app==web", true],
    ["app = web", true],
    ["app=db", false],
    ["app!=db", true],
    ["missing!=x", true],
    ["app!=web", false],
    ["app in (web, db)", true],
    ["app in (db)", false],
    ["app notin (db)", true],
    ["missing notin (db)", true],
    ["app", true],
    ["!app", false],
    ["!missing", true],
    ["empty=", true],
    ["empty in (,x)", true],
    ["missing=", false],
    ["example.com/size>11", true],
    ["example.com/size<12", false],
    ["app>1", false],
    ["toString", false],
    ["app=web,tier=back", false],
    ["app=web,tier in (front),!missing", true],
  ])("%j selects: %s", (text, matches) => {
    expect(matchesLabels(parseLabelSelector(text), labels)).toBe(matches);
  });

  test.each([
    ["app in web", "unable to parse requirement: found 'web' expected: '('"],
    ["app in (web", "unable to parse requirement: found '', expected: ',' or ')'"],
    ["app)", "unable to parse requirement: found ')', expected: in, notin, =, ==, !=, gt, lt"],
    ["app in ((web))", "unable to parse requirement: found '(', expected: ',', or identifier"],
    ["=web", "found '=', expected: !, identifier, or 'end of string'"],
    ["app=we b", "found 'b', expected: ',' or 'end of string'"],
    ["app>x", "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators"],
    ["-app", '<nil>: Invalid value: "-app": name part must consist of'],
    ["app=web,", "found '', expected: identifier after ','"],
    ["a/b/c=d", '<nil>: Invalid value: "a/b/c": a valid label key'],
    ["app=-", 'values[0][app]: Invalid value: "-": a valid label'],
    [`${"x".repeat(64)}=y`, "name part must be no more than 63 bytes"],
    ["x".repeat(20_000), "must not be longer than 16384 characters"],
  ])("%j is refused: %s", (text, problem) => {
    expect(() => parseLabelSelector(text)).toThrow(problem);
  });

  test("in its structured form needs every term, and matches nothing when it is missing", () => {
    const selector = {
      matchLabels: { app: "web" },
      matchExpressions: [{ key: "tier", operator: "In", values: ["front", "back"] }],
    };
    expect(selectorMatches(selector, labels)).toBe(true);
    expect(selectorMatches(selector, { app: "web" })).toBe(false);
    expect(selectorMatches({}, labels)).toBe(true);
    expect(selectorMatches(undefined, labels)).toBe(false);
    const unknown = { matchExpressions: [{ key: "a", operator: "Near" }] };
    expect(() => requirementsOf(unknown)).toThrow("unknown operator Near");
  });
});

const key = fc.stringMatching(/^([a-z]{1,5}\.io\/)?[A-Za-z]([-_.a-z]{0,6}[a-z0-9])?$/);
const value = fc.stringMatching(/^[a-z0-9]{0,6}$/);
const requirement: fc.Arbitrary<LabelRequirement> = fc.oneof(
  fc.record({
    key,
    operator: fc.constantFrom("In", "NotIn"),
    values: fc.uniqueArray(value, { minLength: 1, maxLength: 3 }).map((values) => values.sort()),
  }),
  fc.record({
    key,
    operator: fc.constantFrom("Exists" as const, "DoesNotExist"),
    values: fc.constant<string[]>([]),
  }),
  fc.record({
    key,
    operator: fc.constantFrom("Gt", "Lt"),
    values: fc.nat().map((n) => [String(n)]),
  }),
);

test("a selector read back from its text is the same", () => {
  fc.assert(
    fc.property(fc.array(requirement, { maxLength: 4 }), (requirements) => {
      expect(parseLabelSelector(formatLabelSelector(requirements))).toEqual(requirements);
    }),
  );
});
