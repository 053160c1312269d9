/** The embedded controllers do what the real ones do, step by step, except where docs/contributing/embedded-api.md says why not. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allowanceOf, allowances } from "../allowed.ts";
import { shown } from "../compare.ts";
import { whyNoComparison } from "../servers.ts";
import { sequences } from "./cases/index.ts";
import { type Outcome, play } from "./sequence.ts";
import { type Sides, startSides } from "./sides.ts";

/** Cases that run at the same time, each in a namespace of its own. */
const concurrency = 12;

/**
 * Controllers race with each other and with the collector, in the real cluster too, and either side may show the rarer
 * end. What differs every time differs; what is equal once can be equal.
 */
const attempts = 3;

const reason = whyNoComparison();
const allowed = allowances("Sequences");
const used = new Set<string>();
let sides: Sides;

describe.skipIf(reason !== undefined)(`sequences${reason ? ` (skipped: ${reason})` : ""}`, () => {
  const outcomes = new Map(sequences.map(({ name }) => [name, Promise.withResolvers<Outcome>()]));

  beforeAll(async () => {
    sides = await startSides();
    for (const { promise } of outcomes.values()) promise.catch(() => {});
    const waiting = [...sequences.entries()];
    const work = async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const [index, sequence] = next;
        const isAllowed = (difference: { path: string }) =>
          allowanceOf(allowed, sequence.name, { ...difference, embedded: 0, real: 0 }) !==
          undefined;
        const outcome = outcomes.get(sequence.name);
        const playUntilEqual = async (attempt = 1): Promise<Outcome> => {
          const played = play(sides, sequence, `case-${index}-${attempt}`, isAllowed);
          if (attempt === attempts) return played;
          const last = await played.catch(() => undefined);
          if (last?.open.length === 0) return last;
          const paths = last?.open.map(({ path }) => path).join("; ") ?? "an error";
          console.log(`${sequence.name}: played again, for ${paths}`);
          return playUntilEqual(attempt + 1);
        };
        await playUntilEqual().then(outcome?.resolve, outcome?.reject);
      }
    };
    for (let i = 0; i < concurrency; i++) void work();
  });
  afterAll(() => sides?.stop());

  test.each(sequences)("$name", { timeout: 400_000 }, async ({ name }) => {
    const outcome = await outcomes.get(name)?.promise;
    for (const each of outcome?.allowed ?? []) {
      const found = allowanceOf(allowed, name, each);
      if (found) used.add(found.reason);
    }
    const told = outcome?.open.map(
      ({ path, embedded, real }) =>
        `${path}\n    embedded: ${shown(embedded)}\n    real:     ${shown(real)}`,
    );
    expect(
      told?.join("\n"),
      `${name}, after "${outcome?.step}": differences that docs/contributing/embedded-api.md does not list`,
    ).toBe("");
  });

  test.skipIf(process.env["SEQUENCES"])("every difference that is listed exists", () => {
    expect(allowed.filter((each) => !used.has(each.reason)).map((each) => each.reason)).toEqual([]);
  });
});
