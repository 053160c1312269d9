/** Which rule a request gets. */
import { type ExposedRule } from "@spry/function";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PathTrie } from "./path-trie.ts";
import { otherReadings, requestPath } from "./request-path.ts";
import { createRuleMatcher } from "./rule-matcher.ts";

const exposed = (path: string, methods: string[], regex = false): ExposedRule => ({
  path: regex ? { kind: "regex", regex: path } : { kind: "template", template: path },
  methods,
  authentication: { kind: "none" },
  target: { namespace: "shop", name: "dice", port: 80, exists: true },
  timeoutMs: 1,
  requestHeaders: {},
  requestCookies: {},
});

describe("one template", () => {
  test.each<[template: string, matches: string[], others: string[]]>([
    ["/", ["/"], ["/a", "//"]],
    [
      "/example/one",
      ["/example/one"],
      ["/example/one/", "/example", "/example/One", "/example//one"],
    ],
    ["/anything/", ["/anything/"], ["/anything", "/anything/a"]],
    // The original's table (significance-of-rule-path-and-method-order.md).
    [
      "/example/{*}/one",
      ["/example/anything/one"],
      ["/example//one", "/example/one", "/example/a/b/one"],
    ],
    ["/example/{*}", ["/example/anything"], ["/example/", "/example/anything/", "/example"]],
    [
      "/example/{**}/one",
      ["/example/anything/two/one", "/example/anything/one"],
      ["/example//one", "/example/one", "/example/a/one/b"],
    ],
    [
      "/example/{**}",
      ["/example/anything", "/example/anything/more/", "/example/"],
      ["/example", "/examples/a"],
    ],
    [
      "/{*}/example/{*}/{**}",
      ["/a/example/b/", "/a/example/b/c/d"],
      ["/a/example/b", "//example/b/c", "/example/b/c"],
    ],
    ["/{**}", ["/", "/a", "/a/b/", "/%20[]"], []],
    ["/a/{**}/two", ["/a/b/two", "/a/two/two"], ["/a/two", "/a/b/xtwo"]],
    // Outside of the characters of a path: only `/{**}` lets them through.
    ["/a/{*}", ["/a/%20", "/a/b*"], ["/a/[b]", "/a/b|c", "/a/%zz"]],
    ["/a.b", ["/a.b"], ["/axb"]],
    ["/constructor", ["/constructor"], ["/__proto__", "/toString"]],
  ])("%s", (template, matches, others) => {
    const matcher = createRuleMatcher([exposed(template, ["GET"])]);
    for (const path of matches) expect(matcher.match("GET", path).kind, path).toBe("rule");
    for (const path of others) expect(matcher.match("GET", path).kind, path).toBe("path");
  });
});

describe("several rules", () => {
  const match = (rules: ExposedRule[], method: string, path: string) => {
    const found = createRuleMatcher(rules).match(method, path);
    return found.kind === "rule" ? found.index : found.kind;
  };
  const specificFirst = [
    exposed("/anything/{*}/one", ["POST"]),
    exposed("/anything/{**}", ["POST"]),
    exposed("/anything/{**}", ["GET"]),
  ];
  const excluding = [
    exposed("/anything/{*}/one", ["POST"]),
    exposed("/anything/{**}", ["GET", "POST"]),
  ];
  const asterisks = [
    exposed("/anything/one", ["GET"]),
    exposed("/anything/one/two", ["GET"]),
    exposed("/anything/{*}/one", ["GET"]),
    exposed("/anything/{*}/one/{**}/two", ["DELETE"]),
    exposed("/anything/{*}/{*}/two", ["GET"]),
    exposed("/anything/{**}/two", ["POST"]),
    exposed("/anything/", ["GET"]),
    exposed("/anything/{**}", ["PUT"]),
  ];
  const methods = [exposed("/anything", ["GET", "POST"]), exposed("/anything/put", ["PUT"])];
  test.each<
    [what: string, rules: ExposedRule[], method: string, path: string, result: number | string]
  >([
    // The tables of the original's document, and its test of paths.
    ["the general", specificFirst, "GET", "/anything/more", 2],
    ["the general, other method", specificFirst, "POST", "/anything/more", 1],
    ["the specific", specificFirst, "POST", "/anything/more/one", 0],
    ["the specific path, other method", specificFirst, "GET", "/anything/more/one", 2],
    ["a path that an earlier rule has taken", excluding, "GET", "/anything/more/one", "excluded"],
    ["what it has not taken", excluding, "GET", "/anything/more", 1],
    ["its own", excluding, "POST", "/anything/more/one", 0],
    ["asterisks", asterisks, "GET", "/anything/random/one", 2],
    ["asterisks", asterisks, "POST", "/anything/random/one", "method"],
    ["asterisks", asterisks, "GET", "/anything/a/b/two", 4],
    ["asterisks", asterisks, "DELETE", "/anything/a/one/any/two", 3],
    ["asterisks", asterisks, "POST", "/anything/any/random/two", 5],
    ["asterisks", asterisks, "PUT", "/anything/a/b/two", 7],
    ["asterisks", asterisks, "GET", "/anything/", 6],
    ["asterisks", asterisks, "GET", "/anythin", "path"],
    ["a method of another path", methods, "PUT", "/anything", "method"],
    ["a method of another path", methods, "POST", "/anything/put", "method"],
    ["a method in small letters", methods, "get", "/anything", "method"],
    [
      "expressions, in their order",
      [exposed("/a|/b", ["GET"], true), exposed("/{**}", ["GET"])],
      "GET",
      "/b",
      0,
    ],
    ["expressions, the whole path", [exposed("/a|/b", ["GET"], true)], "GET", "/bc", "path"],
    [
      "expressions that take long elsewhere",
      [exposed("/(a*)*b", ["GET"], true)],
      "GET",
      `/${"a".repeat(2_000)}`,
      "path",
    ],
    ["no rules", [], "GET", "/", "path"],
  ])("%s: %#", (_, rules, method, path, result) => {
    expect(match(rules, method, path)).toBe(result);
  });
});

test.each<[target: string, path: string | undefined]>([
  ["/", "/"],
  ["/a?b=/../c", "/a"],
  ["/a#b", "/a"],
  ["/a//b/", "/a//b/"],
  ["/open/../admin", "/admin"],
  ["/open/%2e%2E/admin", "/admin"],
  ["/open/.%2e/admin", "/admin"],
  ["/../../a", "/a"],
  ["/a/.", "/a/"],
  ["/a/..", "/"],
  ["/a/./b", "/a/b"],
  ["/..a/.b", "/..a/.b"],
  ["/%61dmin", "/admin"],
  ["/%7Ea%2D", "/~a-"],
  ["/a%2Fb", "/a%2Fb"],
  ["/a%20b", "/a%20b"],
  ["/%2561", "/%2561"],
  ["/a\\..\\b", undefined],
  ["/a%5c..%5cb", undefined],
  ["/a%00", undefined],
  ["/open/..%3b/admin", undefined],
  ["/open/..%3Ba=b/admin", undefined],
  ["/open/.%3b/admin", undefined],
  ["/open/%2e%2e%3b/admin", undefined],
  ["/open/%2E%2e%3B%2fadmin", undefined],
  ["/open%2f..%3b%2fadmin", undefined],
  ["/open/..%3f", undefined],
  ["/open/..%23/admin", undefined],
  ["/open/..%09/admin", undefined],
  ["/open/..%0a/admin", undefined],
  ["/open/..%0d%0a/admin", undefined],
  ["/open/.%0A./admin", undefined],
  ["/a%01", undefined],
  ["/a%1F", undefined],
  ["/%7f", undefined],
  ["/%0d%0aset-cookie:%20a", undefined],
  ["/a%20b%21", "/a%20b%21"],
  ["/a%7Eb%80", "/a~b%80"],
  ["/%e0%80%ae%e0%80%ae/admin", undefined],
  ["/%E0%9f%bf", undefined],
  ["/%e0%a0%80", "/%e0%a0%80"],
  ["/%f0%80%80%ae", undefined],
  ["/%f0%9f%98%80", "/%f0%9f%98%80"],
  ["/%f8%80%80%80%ae", undefined],
  ["/%fc%80%80%80%80%ae", undefined],
  ["/%c0.", undefined],
  ["/%ff", "/%ff"],
  ["/%ef%bc%8e", "/%ef%bc%8e"],
  ["/\u00c0\u00ae\u00c0\u00ae/admin", undefined],
  ["/\u00e0\u0080\u00ae", undefined],
  ["/\u00c3\u00a9", "/\u00c3\u00a9"],
  ["/..%252f", "/..%252f"],
  ["/a%2", undefined],
  ["/a%zz", undefined],
  ["/a b", undefined],
  ["/a\tb", undefined],
  ["a", undefined],
  ["", undefined],
  ["*", undefined],
])("the path of %s is %s", (target, path) => {
  expect(requestPath(target)).toBe(path);
});

test.each<[path: string, readings: string[]]>([
  ["/a", []],
  ["/a%20b", []],
  ["/admin;x", ["/admin"]],
  ["/admin%3bx", ["/admin", "/admin;x"]],
  ["/admin%3Bx/y", ["/admin/y", "/admin;x/y"]],
  ["/admin%3fx", ["/admin", "/admin%3fx"]],
  ["/admin%23x", ["/admin", "/admin%23x"]],
  ["/%40admin", ["/@admin"]],
  ["/open%2fadmin", ["/open/admin"]],
  ["//admin", ["/admin"]],
])("the path %s may also be understood as %j", (path, readings) => {
  const found = otherReadings(path);
  expect(found).toEqual(expect.arrayContaining(readings.filter((each) => each !== path)));
  expect(found).not.toContain(path);
  if (readings.length === 0) expect(found).toEqual([]);
});

/** The same in the simplest way: as a regular expression of segments. */
function naively(template: string): RegExp {
  const source = template.replace(/[.*+?^$()|[\]\\]/g, (mark) =>
    mark === "*" ? mark : `\\${mark}`,
  );
  const last = source.endsWith("/{**}");
  const rest = last ? source.slice(0, -"/{**}".length) : source;
  const inside = rest.replaceAll("{**}", ".+").replaceAll("{*}", "[^/]+");
  return new RegExp(`^${inside}${last ? "/.*" : ""}$`);
}

test("a trie of templates matches what each of them matches alone", () => {
  const literal = fc.constantFrom("a", "b", "ab", "");
  const segment = fc.oneof(literal, fc.constant("{*}"));
  const template = fc
    .tuple(fc.array(segment, { maxLength: 3 }), fc.boolean(), fc.array(literal, { maxLength: 2 }))
    .map(
      ([before, glob, after]) => `/${[...before, ...(glob ? ["{**}"] : []), ...after].join("/")}`,
    );
  const path = fc.array(literal, { maxLength: 6 }).map((segments) => `/${segments.join("/")}`);
  fc.assert(
    fc.property(fc.array(template, { maxLength: 8 }), path, (templates, target) => {
      const trie = new PathTrie();
      for (const [index, each] of templates.entries()) trie.add(each, index);
      const expected = templates.flatMap((each, index) =>
        naively(each).test(target) ? [index] : [],
      );
      expect(trie.match(target).sort((a, b) => a - b)).toEqual(expected);
    }),
    { seed: 20, numRuns: 3_000 },
  );
});

/** How long one look-up takes, in microseconds: the best of many short rounds, which a busy machine seldom interrupts all. */
function lookUp(rules: number): number {
  const all = Array.from({ length: rules }, (_, n) =>
    exposed(n % 3 === 0 ? `/a${n}/{*}/c` : n % 3 === 1 ? `/a${n}/b/c` : `/a${n}/{**}`, ["GET"]),
  );
  const matcher = createRuleMatcher([...all, exposed("/{**}", ["GET"])]);
  const lookUps = 500;
  const once = () => {
    const started = performance.now();
    for (let n = 0; n < lookUps; n++) matcher.match("GET", `/a${n % rules}/b/c`);
    return ((performance.now() - started) * 1_000) / lookUps;
  };
  return Math.min(...Array.from({ length: 100 }, once));
}

/** The figure itself is in bench/: here, that it does not grow with the rules. */
test("a look-up among 2,000 rules takes about as long as one among 20", () => {
  expect(lookUp(2_000) / lookUp(20)).toBeLessThan(4);
});
