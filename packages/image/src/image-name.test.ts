import { describe, expect, test } from "vitest";
import { digestOf, formatImageName, parseImageName } from "./index.ts";

const names: { text: string; name?: object; formatted?: string; why?: RegExp }[] = [
  { text: "alpine", name: { host: "docker.io", repository: "library/alpine", tag: "latest" } },
  { text: "kyma/fn:1", name: { host: "docker.io", repository: "kyma/fn", tag: "1" } },
  { text: "localhost/a", name: { host: "localhost", repository: "a", tag: "latest" } },
  {
    text: "registry.spry.localhost:5000/a/b-c__d:v1.2",
    name: { host: "registry.spry.localhost:5000", repository: "a/b-c__d", tag: "v1.2" },
  },
  {
    text: `r.io/a:1@${digestOf("")}`,
    name: { host: "r.io", repository: "a", tag: "1", digest: digestOf("") },
  },
  { text: `r.io/a@${digestOf("")}`, name: { host: "r.io", repository: "a", digest: digestOf("") } },
  { text: "r.io/A", why: /a repository name consists of lower case/ },
  { text: "r.io/a/../b", why: /a repository name consists of lower case/ },
  { text: "r.io/a:", why: /not a valid tag/ },
  { text: "r.io/a@sha256:1", why: /reading digest/ },
  { text: "r.io/a@b@c", why: /more than one @/ },
  { text: "", why: /a repository name consists of lower case/ },
  { text: "a".repeat(600), why: /longer than 512/ },
  { text: "ev:il@host/a", why: /reading/ },
];

describe("an image name", () => {
  test.each(names)("is read or refused: $text", ({ text, name, why }) => {
    if (why) return expect(() => parseImageName(text)).toThrow(why);
    expect(parseImageName(text)).toEqual(name);
    expect(parseImageName(formatImageName(parseImageName(text)))).toEqual(name);
  });
});
