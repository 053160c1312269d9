import { expect, test } from "vitest";
import {
  builtMessage,
  digestInMessage,
  leftOutInMessage,
  sourceDigest,
} from "./builder-contract.ts";

const digest = `sha256:${"0123456789abcdef".repeat(4)}`;

test("the digest of a source is what sha256sum prints, in any order of the files", () => {
  const files = [
    { path: "package.json", content: "{}" },
    { path: "handler.js", content: new TextEncoder().encode("code") },
  ];
  // printf code > handler.js; printf {} > package.json; sha256sum handler.js package.json | sha256sum
  const expected = "sha256:5b59c31bcb3ef43ba23ebe32c399858a5db52bb956f904242ecfc3a555fbd907";
  expect(sourceDigest(files)).toBe(expected);
  expect(sourceDigest(files.toReversed())).toBe(expected);
});

test("what the image lacks is in the message, however much it is", () => {
  const image = `registry/dice@${digest}`;
  expect(leftOutInMessage(builtMessage(image))).toEqual([]);
  const one = 'submodule "lib" is left out: it has no URL';
  expect(leftOutInMessage(builtMessage(image, [one]))).toEqual([one]);
  const many = Array.from({ length: 1000 }, (_, at) => `"${"\\\n".repeat(2000)}" ${at}`);
  const message = builtMessage(image, many);
  expect(Buffer.byteLength(message)).toBeLessThan(4096);
  expect(digestInMessage(message)).toBe(digest);
  expect(leftOutInMessage(message).at(-1)).toBe("and 992 more, see the log of the build");
  for (const wrong of ["", "null", '{"leftOut":1}', '{"leftOut":[1]}'])
    expect(leftOutInMessage(wrong)).toEqual([]);
});

test.each<[string, string | undefined]>([
  [builtMessage(`registry:5000/shop/dice@${digest}`), digest],
  [builtMessage("registry:5000/shop/dice:1"), undefined],
  [builtMessage(`registry/dice@${digest}0`), undefined],
  ['{"image":1}', undefined],
  ["null", undefined],
  ["out of memory", undefined],
])("the message %j has the digest %s", (message, found) => {
  expect(digestInMessage(message)).toBe(found);
});
