/** What of pip's settings and requirements uv is told, and what it is not trusted with. */
import { expect, test } from "vitest";
import { sourcesOf, sourceVariables } from "./package-sources.ts";
import { plainRequirements } from "./requirements.ts";

const index = "https://me:word@index.example/simple";

/** [pip's settings, uv's variables or why it gets none] */
const settings: [Record<string, string>, Record<string, string> | RegExp][] = [
  [{}, {}],
  [{ "index-url": index, retries: "9" }, { UV_DEFAULT_INDEX: index }],
  // Of the same version in several indexes pip takes the last.
  [
    { "index-url": index, "extra-index-url": "https://b/\nhttps://c/" },
    { UV_DEFAULT_INDEX: index, UV_INDEX: "https://c/ https://b/" },
  ],
  [{ "extra-index-url": "https://b/" }, { UV_INDEX: "https://b/" }],
  [{ "index-url": index, "no-index": "true", "find-links": "/" }, { UV_FIND_LINKS: "/" }],
  [{ "index-url": "http://127.0.0.1:1/" }, { UV_DEFAULT_INDEX: "http://127.0.0.1:1/" }],
  [{ "index-url": "http://far/", "trusted-host": "far" }, { UV_DEFAULT_INDEX: "http://far/" }],
  [{ "index-url": "http://far/" }, /neither https nor trusted/],
  [{ "index-url": "/srv/index" }, /neither https nor trusted/],
  [{ "find-links": "https://page/" }, /find-links is more than a directory/],
  [{ proxy: "http://proxy:1" }, /pip's setting proxy/],
  [{ "client-cert": "/key.pem" }, /pip's setting client-cert/],
];
test.each(settings)("of %j uv is told %s", (given, expected) => {
  const translate = () => sourceVariables(sourcesOf(new Map(Object.entries(given))));
  if (expected instanceof RegExp) expect(translate).toThrow(expected);
  else expect(translate()).toEqual(expected);
});

const plain = (text: string, more: Record<string, string> = {}) => {
  const sources = sourcesOf(new Map([["extra-index-url", "https://config/"]]));
  const files = Object.entries({ "requirements.txt": text, ...more }).map(([path, content]) => ({
    path,
    content: Buffer.from(content),
    mode: 0o644,
  }));
  return { ...plainRequirements(files, sources), sources };
};

test("requirements go to uv without comments, and without where packages are", () => {
  const hash = `--hash=sha256:${"0".repeat(64)}`;
  const text = `# ours
-i https://other/
--extra-index-url=https://third/
-c more/constraints.txt
one[a,b]>=1,<2 ; python_version > "3" and extra != 'x'  # why
two == 2.0 \\
    ${hash}
`;
  const { files, hashed, sources } = plain(text, { "more/constraints.txt": "one<1.5\n" });
  expect(files).toEqual([
    {
      path: "requirements.txt",
      text: `-c more/constraints.txt\none[a,b]>=1,<2 ; python_version > "3" and extra != 'x'\ntwo == 2.0      ${hash}\n`,
    },
    { path: "more/constraints.txt", text: "one<1.5\n" },
  ]);
  expect(hashed).toBe(true);
  expect(sources).toMatchObject({ index: "https://other/", extraIndexes: ["https://third/"] });
});

test.each([
  "one @ https://host/one.tar.gz",
  "https://host/one.tar.gz",
  "git+https://host/one.git",
  "-e .",
  "./one",
  "one; extra == 'a/b'",
  "--pre",
  "one --config-settings=a=b",
  "-r https://host/more.txt",
  "-r /etc/more.txt",
  "one==${VERSION}",
  "-i ${INDEX}",
  "a b c",
])("the requirement %s is left to pip", (line) => {
  expect(() => plain(`${line}\n`)).toThrow(/uv has no equivalent of a line in requirements\.txt/);
});

test("an index in an included file is left to pip: the order counts", () => {
  expect(() => plain("-r more.txt\n", { "more.txt": "-i https://other/\n" })).toThrow(/more\.txt/);
});
