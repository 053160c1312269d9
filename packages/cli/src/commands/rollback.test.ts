/** Which revision a rollback returns to, and what the user is warned of. */
import { annotations, type Function, type FunctionRevision } from "@spry/function";
import { describe, expect, test } from "vitest";
import { entryOf, historyTable } from "./history.ts";
import { notesOn, targetOf } from "./rollback.ts";

const inline = (source: string) => ({ runtime: "nodejs24", source: { inline: { source } } });
const git = (reference: string) => ({
  runtime: "nodejs24",
  source: { gitRepository: { url: "https://git.example/a", baseDir: "/", reference } },
});

function fn(spec: object, more: { status?: object; metadata?: object } = {}): Function {
  return { metadata: { name: "dice", ...more.metadata }, spec, status: more.status } as Function;
}

function revision(number: number, spec: object, more: object = {}): FunctionRevision {
  const image = `registry/default/dice@sha256:${String(number).repeat(64)}`;
  return {
    metadata: { name: `dice-0000${number}` },
    revision: number,
    data: { spec, image, buildKey: `key ${number}`, time: "2026-01-02T03:04:05Z", ...more },
  } as FunctionRevision;
}

/** With the mark that the controller leaves on what has served. */
function served(number: number, spec: object, more: object = {}): FunctionRevision {
  const plain = revision(number, spec, more);
  return {
    ...plain,
    metadata: { ...plain.metadata, annotations: { [annotations.served]: "true" } },
  };
}

const edits = [revision(3, inline("c")), revision(2, inline("b")), revision(1, inline("a"))];

describe("without a number, a rollback returns to the newest revision", () => {
  test.each<[string, Function, FunctionRevision[], number]>([
    ["before the present one", fn(inline("c")), edits, 2],
    ["of all, from an edit that has none", fn(inline("d")), edits, 3],
    ["that differs, after a rollback", fn(inline("b")), [revision(4, inline("b")), ...edits], 3],
    [
      "that differs by more than its scale",
      fn({ ...inline("c"), scaleConfig: { minReplicas: 1, maxReplicas: 3 }, replicas: 2 }),
      edits,
      2,
    ],
    [
      "with another commit of the branch",
      fn(git("main"), {
        status: { gitRepository: { ...git("main").source.gitRepository, commit: "bbb" } },
      }),
      [revision(2, git("main"), { commit: "bbb" }), revision(1, git("main"), { commit: "aaa" })],
      1,
    ],
    [
      "with another demand for a build",
      fn(inline("a"), { metadata: { annotations: { [annotations.rebuild]: "now" } } }),
      [revision(2, inline("a"), { rebuild: "now" }), revision(1, inline("a"))],
      1,
    ],
    [
      "that has served, not one whose code never loaded",
      fn(inline("c")),
      [served(3, inline("c")), revision(2, inline("broken")), served(1, inline("a"))],
      1,
    ],
    [
      "that has served, from an edit whose code does not load",
      fn(inline("broken")),
      [revision(3, inline("broken")), served(2, inline("b")), served(1, inline("a"))],
      2,
    ],
  ])("%s", (_, present, history, number) => {
    expect(targetOf(present, history, undefined).revision).toBe(number);
  });
});

test("with a number, to that one", () => {
  expect(targetOf(fn(inline("c")), edits, 1).revision).toBe(1);
});

test.each<[string, Function, FunctionRevision[], number | undefined, RegExp]>([
  [
    "an unknown revision",
    fn(inline("c")),
    edits,
    9,
    /^Function dice has no version 9; it has 3, 2, 1$/,
  ],
  [
    "the present one",
    fn(inline("c")),
    edits,
    3,
    /^Function dice already has the content of version 3$/,
  ],
  [
    "one that is like it",
    fn(inline("c")),
    [revision(4, inline("c")), ...edits],
    3,
    /already has the content/,
  ],
  [
    "no other one",
    fn(inline("a")),
    [revision(1, inline("a"))],
    undefined,
    /no version that differs/,
  ],
])("%s is refused", (_, present, history, to, message) => {
  expect(() => targetOf(present, history, to)).toThrow(message);
});

describe("the command notes", () => {
  test.each<[string, Function, Function, RegExp[]]>([
    ["nothing that is as expected", fn(inline("b")), fn(inline("a")), []],
    [
      "that a Git source is pinned",
      fn(git("main")),
      fn(git("aaa")),
      [/now the commit aaa, and was main;/],
    ],
    [
      "of Flux",
      fn(inline("b")),
      fn(inline("a"), { metadata: { labels: { "kustomize.toolkit.fluxcd.io/name": "apps" } } }),
      [/^Flux \(apps\) manages this Function/],
    ],
    [
      "of Argo CD",
      fn(inline("b")),
      fn(inline("a"), { metadata: { annotations: { "argocd.argoproj.io/tracking-id": "x" } } }),
      [/^Argo CD manages/],
    ],
    [
      "of traffic that goes elsewhere",
      fn(inline("b")),
      fn({
        ...inline("a"),
        traffic: [
          { revision: 2, percent: 90 },
          { latest: true, percent: 10 },
        ],
      }),
      [/gives the new version 10 %/],
    ],
  ])("%s", (_, before, after, notes) => {
    expect(notesOn(before, after)).toEqual(notes.map((each) => expect.stringMatching(each)));
  });
});

test("the history as a table", () => {
  const commit = "0123456789abcdef0123456789abcdef01234567";
  const present = fn(inline("c"), { status: { revision: 2 } });
  const all = [
    revision(4, inline("d"), { author: "ann" }),
    revision(3, inline("c"), { author: "ann" }),
    served(2, git("main"), { commit }),
    served(1, git(commit), { commit, author: "system:admin" }),
  ];
  expect(historyTable(all.map((each) => entryOf(present, each)))).toEqual([
    "VERSION   TIME                   AUTHOR         RUNTIME    SOURCE                       IMAGE                 SERVES",
    expect.stringMatching(/^4 .* sha256:444444444444 {3}not ready$/),
    "3         2026-01-02T03:04:05Z   ann            nodejs24   inline sha256:000992bb0dd4   sha256:333333333333   never ready",
    "2         2026-01-02T03:04:05Z   -              nodejs24   main at 0123456789ab         sha256:222222222222   100 %",
    "1         2026-01-02T03:04:05Z   system:admin   nodejs24   0123456789ab                 sha256:111111111111",
  ]);
});

test("shares of traffic as what serves", () => {
  const traffic = [
    { revision: 1, percent: 90 },
    { latest: true, percent: 10 },
  ];
  const present = fn({ ...inline("b"), traffic }, { status: { revision: 2 } });
  const all = [revision(3, inline("c")), revision(2, inline("b")), revision(1, inline("a"))];
  expect(all.map((each) => entryOf(present, each).serves)).toEqual([0, 10, 90]);
});
