import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readManifests } from "./manifests.ts";

let dir = "";
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), "manifests-"));
});
afterAll(() => rmSync(dir, { recursive: true }));

function write(name: string, text: string): string {
  const file = path.join(dir, name);
  writeFileSync(file, text);
  return file;
}

const object = (name: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n`;
const namesIn = (...files: string[]) =>
  readManifests(files).map(({ object }) => object.metadata.name);

describe("manifests are read", () => {
  test("from several documents, empty ones passed over", () => {
    expect(namesIn(write("many.yaml", `${object("a")}---\n---\n${object("b")}`))).toEqual([
      "a",
      "b",
    ]);
  });

  test("from a List", () => {
    const list = {
      apiVersion: "v1",
      kind: "List",
      items: [{ apiVersion: "v1", kind: "X", metadata: { name: "in-list" } }],
    };
    expect(namesIn(write("list.json", JSON.stringify(list)))).toEqual(["in-list"]);
  });

  test("from a directory, in the order of names, other files passed over", () => {
    write("z.yml", object("z"));
    write("notes.txt", "not a manifest");
    expect(namesIn(dir)).toEqual(["in-list", "a", "b", "z"]);
  });
});

test("as kubectl reads them: octal numbers, words for true and false, merge keys, a byte order mark", () => {
  const text = `\uFEFF${object("modes")}spec:\n  a: &a { mode: 0400 }\n  b: { <<: *a, on: yes, at: 22:22, id: 9223372036854775807 }\n`;
  const [manifest] = readManifests([write("modes.yaml", text)]);
  expect(JSON.stringify(manifest?.object)).toBe(
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"modes"},' +
      '"spec":{"a":{"mode":256},"b":{"mode":256,"true":true,"at":"22:22","id":9223372036854775807}}}',
  );
  rmSync(path.join(dir, "modes.yaml"));
});

describe("a mistake is told with its place", () => {
  test.each([
    [
      "a path that is not there",
      "/nowhere/at/all.yaml",
      /the path \/nowhere\/at\/all.yaml does not exist/,
    ],
    ["no YAML", () => write("broken.yaml", "a: [1"), /broken.yaml is not valid YAML/],
    ["no kind", () => write("nokind.yaml", "metadata: {name: x}"), /needs apiVersion and kind/],
    [
      "no name",
      () => write("noname.yaml", "apiVersion: v1\nkind: X\nmetadata: {}"),
      /metadata.name is missing/,
    ],
    [
      "what no object can have",
      () => write("infinite.yaml", `${object("x")}spec: { list: [1, .inf] }\n`),
      /infinite.yaml: spec.list.1 is .inf/,
    ],
    ["nothing in it", () => write("empty.yaml", "---\n"), /contains no object/],
  ])("%s", (_name, file, message) => {
    expect(() => readManifests([typeof file === "string" ? file : file()])).toThrow(message);
  });

  test("the configuration of a directory, with the command for that", () => {
    const file = write("spry.yaml", "name: dice\n");
    const wayOut = expect.stringMatching(/configuration of a directory: .*spry deploy \//);
    expect(() => readManifests([file])).toThrow(expect.objectContaining({ wayOut }));
  });
});
