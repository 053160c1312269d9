import { ManualClock } from "@spry/kube";
import { beforeEach, describe, expect, test } from "vitest";
import { CommitLookups } from "./commit-lookups.ts";
import { type CommitQuestion } from "./resolve-commit.ts";

const clock = new ManualClock();
let asked: { reference: string; answer: (commit: string) => void }[];
let woken: string[];
let lookups: CommitLookups;
beforeEach(() => {
  asked = [];
  woken = [];
  lookups = new CommitLookups({
    resolve: ({ reference }: CommitQuestion) =>
      new Promise((answer) => asked.push({ reference, answer })),
    wake: (user) => woken.push(user),
    clock,
    max: 2,
  });
});

const ask = (user: string, reference = user, demand = "") =>
  lookups.ask(user, { url: "u", reference }, { intervalMs: 1000, demand });
const references = () => asked.map(({ reference }) => reference);
async function answer(reference: string, commit = "c"): Promise<void> {
  asked.findLast((each) => each.reference === reference)?.answer(commit);
  await clock.advance(0);
}

describe("questions", () => {
  test("are asked two at a time, the others when there is room", async () => {
    for (const user of ["a/1", "a/2", "a/3"]) ask(user);
    expect(references()).toEqual(["a/1", "a/2"]);
    await answer("a/1");
    expect(references()).toEqual(["a/1", "a/2", "a/3"]);
  });

  test("of a namespace with fewer under way go first", async () => {
    for (const user of ["a/1", "a/2", "a/3", "a/4", "b/1"]) ask(user);
    await answer("a/1");
    expect(references().at(-1)).toBe("b/1");
  });

  test("that no Function has any more are not asked", async () => {
    for (const user of ["a/1", "a/2", "a/3"]) ask(user);
    lookups.forget("a/3");
    await answer("a/1");
    await answer("a/2");
    await clock.advance(10_000);
    expect(references()).not.toContain("a/3");
  });

  test("are asked again after the interval; only news wakes", async () => {
    ask("a/1");
    await answer("a/1", "one");
    expect(woken).toEqual(["a/1"]);
    await clock.advance(1000);
    await answer("a/1", "one");
    expect(woken).toEqual(["a/1"]);
    await clock.advance(1000);
    await answer("a/1", "two");
    expect(woken).toEqual(["a/1", "a/1"]);
    expect(ask("a/1")).toEqual({ answer: { commit: "two" }, isDemanded: false });
  });

  test("asked anew while an answer is on its way get one from after that", async () => {
    ask("a/1");
    expect(ask("a/1", "a/1", "now")).toEqual({ answer: undefined, isDemanded: true });
    await answer("a/1", "old");
    expect(woken).toEqual([]);
    await answer("a/1", "new");
    expect(woken).toEqual(["a/1"]);
    expect(ask("a/1", "a/1", "now")).toEqual({ answer: { commit: "new" }, isDemanded: false });
  });
});
