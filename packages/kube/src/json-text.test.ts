import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  elementTexts,
  elementsOf,
  indentJson,
  JsonText,
  memberText,
  membersOf,
  stringifyJson,
} from "./json-text.ts";

/** JSON texts that a parser does not keep: numbers of all forms, equal keys, keys like indexes, white space. */
const space = fc.constantFrom("", " ", "\n", "\t ", "\r\n");
const number = fc.oneof(
  fc.stringMatching(/^-?(?:0|[1-9]\d{0,24})(?:\.\d{1,6})?(?:[eE][+-]?\d{1,4})?$/),
  fc.constantFrom("-0", "1.10", "1e400", "12345678901234567890", "0.1e-7", "1E5"),
);
const string = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }).map((text) => JSON.stringify(text)),
  fc.constantFrom(
    String.raw`"\\"`,
    String.raw`"\\\""`,
    String.raw`"\ud800"`,
    String.raw`"\u0041\/"`,
    '"]}"',
  ),
);
const json = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    number,
    string,
    fc.constantFrom("true", "false", "null"),
    fc
      .tuple(space, fc.array(fc.tuple(space, tie("value"), space), { maxLength: 4 }))
      .map(
        ([inner, all]) =>
          `[${all.length === 0 ? inner : all.map((each) => each.join("")).join(",")}]`,
      ),
    fc
      .tuple(
        space,
        fc.array(
          fc.tuple(
            space,
            fc.oneof(string, fc.constantFrom('"1"', '"b"', '"1"')),
            space,
            tie("value"),
            space,
          ),
          { maxLength: 4 },
        ),
      )
      .map(
        ([inner, all]) =>
          `{${all.length === 0 ? inner : all.map(([a, name, b, value, c]) => `${a}${name}${b}:${b}${value}${c}`).join(",")}}`,
      ),
  ),
})).value;
const compact = (text: string) => indentJson(text, 0).replaceAll(/\n/g, "").replaceAll(/: /g, ":");

test("members and elements are the texts that were written", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.string({ maxLength: 5 }), json, space)), (given) => {
      const text = ` {${given.map(([name, value, pad]) => `${pad}${JSON.stringify(name)}${pad}:${pad}${value}${pad}`).join(",")}} `;
      const members = membersOf(text);
      expect(members.map(({ name, start, end }) => [name, text.slice(start, end)])).toEqual(
        given.map(([name, value]) => [name, value]),
      );
      const list = `[${given.map(([, value, pad]) => pad + value + pad).join(",")}]`;
      expect(elementsOf(list).map(({ start, end }) => list.slice(start, end))).toEqual(
        given.map(([, value]) => value),
      );
    }),
    { seed: 7 },
  );
});

test("indented JSON has the same tokens, in lines as JSON.stringify writes them", () => {
  fc.assert(
    fc.property(json, (text) => {
      const lines = indentJson(text, 2);
      expect(indentJson(lines, 2)).toBe(lines);
      expect(compact(lines)).toBe(compact(text));
      expect(JSON.parse(lines)).toEqual(JSON.parse(text));
    }),
    { seed: 7 },
  );
  const plain = { a: [1, { b: [] }, {}], c: "x", d: [[2], null] };
  expect(indentJson(JSON.stringify(plain), 2)).toBe(JSON.stringify(plain, null, 2));
});

test("texts are written into others as they are", () => {
  const text = '{"n":12345678901234567890,"o":{"b":1,"1":3}}';
  const value = {
    at: new Date(0),
    none: undefined,
    list: [undefined, new JsonText(text)],
    "\n": null,
  };
  expect(stringifyJson(value)).toBe(
    `{"at":"1970-01-01T00:00:00.000Z","list":[null,${text}],"\\n":null}`,
  );
  expect(stringifyJson({ a: [1, "x", { b: true }] })).toBe('{"a":[1,"x",{"b":true}]}');
});

test("parts of an answer are found by name; of equal names the last one counts", () => {
  const text = '{"items":[1], "items" : [ 1.10 , {"a":1e400} ],"next":null}';
  expect(elementTexts(text, "items")).toEqual(["1.10", '{"a":1e400}']);
  expect([memberText(text, "next"), memberText(text, "other")]).toEqual(["null", undefined]);
  expect(elementTexts(text, "other")).toEqual([]);
});

test("a text that is nested deeply overflows no stack", () => {
  const deep = `{"data":${"[".repeat(200_000)}${"]".repeat(200_000)}}`;
  expect(membersOf(deep)).toEqual([{ name: "data", start: 8, end: deep.length - 1 }]);
});
