/** What the console shows of a response, and which headers it can send. */
import { describe, expect, test } from "vitest";
import { headerProblem } from "./state/call-request.ts";
import { fileNameOf, hexOf, maxShown, prettyOf, textOf, viewsOf } from "./state/response-body.ts";

const answer = (type: string, body: string | Buffer) => ({
  headers: [["Content-Type", type]] as [string, string][],
  body: new Uint8Array(Buffer.from(body as string)),
  totalMs: 1,
});

describe("a response's body", () => {
  test.each([
    [
      '{"b":12345678901234567890,"a":1.10,"a":[]}',
      '{\n  "b": 12345678901234567890,\n  "a": 1.10,\n  "a": []\n}',
    ],
    ["[1e400]", "[\n  1e400\n]"],
  ])("in JSON %s keeps its numbers, its names and their order", (text, shown) => {
    expect(prettyOf(answer("application/json", text))).toBe(shown);
  });

  test.each<[string, string, string | Buffer, string[]]>([
    ["JSON", "application/problem+json; charset=utf-8", "{}", ["pretty", "raw", "hex"]],
    ["what only says that it is JSON", "application/json", "{", ["raw", "hex"]],
    ["text", "text/plain", "text", ["raw", "hex"]],
    ["coloured output", "text/plain", "\u001b[31mred", ["raw", "hex"]],
    ["a picture", "image/png", Buffer.from([0x89, 0x50]), ["picture", "hex", "raw"]],
    ["bytes", "application/octet-stream", Buffer.from([0, 1, 255]), ["hex", "raw"]],
    [
      "bytes that are said to be text",
      "text/plain",
      Buffer.from([0xff, 0xfe, 0xfd]),
      ["hex", "raw"],
    ],
  ])("of %s is shown as what it is", (_, type, body, views) => {
    expect(viewsOf(answer(type, body))).toEqual(views);
  });

  test.each([
    ["text/plain; charset=iso-8859-1", Buffer.from([0xe4]), "ä"],
    ['text/plain; charset="utf-16le"', Buffer.from("ä", "utf16le"), "ä"],
    ["text/plain; charset=unknown", Buffer.from("ä"), "ä"],
  ])("of type %s is read by its charset", (type, body, text) => {
    expect(textOf(answer(type, body))).toBe(text);
  });

  test("is shown up to a limit, and as hex with its text", () => {
    const large = answer("text/plain", "x".repeat(maxShown.text + 1));
    expect(textOf(large)).toHaveLength(maxShown.text);
    expect(prettyOf(large)).toBeUndefined();
    expect(hexOf(answer("", "0123456789abcdef\u0000"))).toBe(
      "00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef\n" +
        `00000010  00${" ".repeat(47)}.`,
    );
    expect(fileNameOf("fn", answer("image/svg+xml; charset=utf-8", ""))).toBe("fn.svg");
    expect(fileNameOf("fn", answer("../../x", ""))).toBe("fn.bin");
  });
});

test.each([
  ["", undefined],
  ["A: b\n\nC:", undefined],
  ["no colon", "line 1: a header is a name, a colon and a value"],
  ["A: b\n: c", "line 2: a header is a name, a colon and a value"],
  ["Host: x", "line 1: Host is set by the dashboard, and cannot be sent from here"],
  ["a b: c", "line 1: a b is not a valid name of a header"],
  ["A: €", "line 1: the value of A has characters that a header cannot have, or more than 8192"],
])("the headers %j have the problem %j", (text, problem) => {
  expect(headerProblem(text)).toBe(problem);
});
