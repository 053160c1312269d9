import { describe, expect, test } from "vitest";
import { followLink, type LinkEnd, type SourceEntryKind } from "./source-links.ts";

const entries: Record<string, SourceEntryKind> = {
  "a.js": "file",
  code: "folder",
  "code/b.js": "file",
  "code/deep": "folder",
  "code/deep/up": { link: ".." },
  "code/deep/top": { link: "../../a.js" },
  "code/deep/out": { link: "../../../x" },
  "code/deep/around": { link: "../../../source/a.js" },
  link: { link: "code" },
  slash: { link: "./code//deep/" },
  chain: { link: "link/deep" },
  own: { link: "own" },
  one: { link: "two" },
  two: { link: "one" },
  self: { link: "." },
  host: { link: "/etc/hostname" },
  indirect: { link: "host" },
  none: { link: "none.js" },
  through: { link: "a.js/x" },
  package: { link: "node_modules/x" },
  node_modules: "installed",
  "a\nb": { link: "a.js" },
};
const entryAt = (path: string) => entries[path];

describe("a link leads", () => {
  test.each<[path: string, end: LinkEnd]>([
    ["link", { kind: "folder", path: "code" }],
    ["slash", { kind: "folder", path: "code/deep" }],
    ["chain", { kind: "folder", path: "code/deep" }],
    ["link/b.js", { kind: "file", path: "code/b.js" }],
    ["code/deep/top", { kind: "file", path: "a.js" }],
    ["code/deep/up", { kind: "folder", path: "code" }],
    ["chain/up/deep/up", { kind: "folder", path: "code" }],
    ["self", { kind: "folder", path: "" }],
    ["self/self/a.js", { kind: "file", path: "a.js" }],
    ["a\nb", { kind: "file", path: "a.js" }],
    ["package", { kind: "installed", path: "node_modules" }],
    ["own", { kind: "circle", path: "own" }],
    ["one", { kind: "circle", path: "one" }],
    ["code/deep/out", { kind: "outside", path: ".." }],
    // By way of a folder whose name is not the source's own to know.
    ["code/deep/around", { kind: "outside", path: ".." }],
    ["host", { kind: "absolute", path: "host" }],
    ["indirect", { kind: "absolute", path: "host" }],
    ["none", { kind: "missing", path: "none.js" }],
    ["through", { kind: "missing", path: "a.js" }],
  ])("%j", (path, end) => expect(followLink(path, entryAt)).toEqual(end));
});
