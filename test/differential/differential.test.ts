/** The embedded API server answers as the real one does, except where docs/contributing/embedded-api.md says why not. */
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allowanceOf, allowances } from "./allowed.ts";
import { type Difference, differencesOf, told } from "./compare.ts";
import { cases as corpus } from "./corpus/index.ts";
import { replay } from "./replay.ts";
import { type Case, type Step } from "./step.ts";
import { type Servers, startServers, whyNoComparison } from "./servers.ts";

/** Steps by case that differ and are neither fixed nor listed yet: none may be added. Written with DIFFERENTIAL_UPDATE=1. */
const knownFile = new URL("known-differences.json", import.meta.url);
const known = JSON.parse(readFileSync(knownFile, "utf8")) as Record<string, number[]>;
/** A sample of the corpus, for the gate: one case in eight, of every kind. */
const isSmoke = process.env["SPRY_DIFFERENTIAL"] === "smoke";
const cases = isSmoke ? corpus.filter((_, index) => index % 8 === 0) : corpus;
const updating = process.env["DIFFERENTIAL_UPDATE"] === "1";
const found: Record<string, number[]> = {};
/** A file for every difference, to be looked through. */
const reportFile = process.env["DIFFERENTIAL_REPORT"];
const report: object[] = [];

const reason = whyNoComparison();
const allowed = allowances();
const used = new Set<string>();
const count = { requests: 0, equal: 0, allowed: 0, open: 0 };
let servers: Servers;

describe.skipIf(reason !== undefined)(`answers${reason ? ` (skipped: ${reason})` : ""}`, () => {
  beforeAll(async () => {
    servers = await startServers();
  });
  afterAll(async () => {
    await servers?.stop();
    if (updating) writeFileSync(knownFile, `${JSON.stringify(found)}\n`);
    if (reportFile) writeFileSync(reportFile, JSON.stringify(report));
    const { requests, equal, open } = count;
    console.log(
      `${requests} requests: ${equal} answered equally, ${count.allowed} differ for a reason, ${open} differ`,
    );
  });

  test.each(cases.map((one, index) => ({ ...one, index })))(
    "$name",
    async (one) => {
      let steps: PlayedStep[] = [];
      for (const play of mayBeRepeated(one) ? [1, 2, 3] : [1]) {
        if (play > 1) console.log(`${one.name}: answered differently, played again`);
        steps = await played(one, `case-${one.index}${"-again".repeat(play - 1)}`, play);
        if (steps.every(({ left }) => left.length === 0)) break;
      }
      const open: string[] = [];
      for (const [index, { step, differences, left }] of steps.entries()) {
        count.requests++;
        if (differences.length === 0) count.equal++;
        else if (left.length === 0) count.allowed++;
        else {
          count.open++;
          (found[one.name] ??= []).push(index);
          report.push(...left.map((each) => ({ case: one.name, step, ...each })));
          if (!known[one.name]?.includes(index)) open.push(...left.map((each) => told(step, each)));
        }
      }
      if (updating) return;
      const message = `${one.name}: differences that docs/contributing/embedded-api.md does not list`;
      expect(open.join("\n"), message).toBe("");
      const fixed = (known[one.name] ?? []).filter((each) => !found[one.name]?.includes(each));
      expect(fixed, "steps of known-differences.json that answer equally now").toEqual([]);
    },
    180_000,
  );

  // A sample meets only some of them.
  if (!isSmoke) {
    test("every difference that is listed exists", () => {
      const unused = allowed.filter((each) => !each.isChance && !used.has(each.reason));
      expect(unused.map((each) => each.reason)).toEqual([]);
    });
  }
});

interface PlayedStep {
  step: Step;
  differences: Difference[];
  /** Those that no row of docs/contributing/embedded-api.md allows. */
  left: Difference[];
}

/** Not where both servers would refuse what the first play has left, equally, whatever they did at first. */
function mayBeRepeated({ steps }: Case): boolean {
  const leaves = ({ method, path, body }: Step) =>
    method === "POST" &&
    path.endsWith("/customresourcedefinitions") &&
    !JSON.stringify(body).includes("$ns");
  return !steps.some(leaves) || steps.some(({ settleMs }) => settleMs !== undefined);
}

/**
 * The real server answers many questions (roles, quotas, limits, policies) from caches that hear of a write a moment later,
 * on a busy machine much later: when answers differ, it gets time to hear, more at each play. Ours never gets any but what
 * a step itself asks for.
 */
async function played(one: Case, namespace: string, play: number): Promise<PlayedStep[]> {
  const pauseMs = (play - 1) * 500;
  const [embedded, real] = await Promise.all([
    replay(servers.embedded, one, { namespace, patience: play, pauseMs: 0 }),
    replay(servers.real, one, { namespace, patience: play, pauseMs }),
  ]);
  return one.steps.map((step, index) => {
    const [ours, theirs] = [embedded[index], real[index]];
    if (!ours || !theirs) throw new Error(`step ${index} has no answer`);
    const differences = differencesOf(index, ours, theirs);
    return { step, differences, left: differences.filter((each) => !isAllowed(one.name, each)) };
  });
}

function isAllowed(name: string, difference: Difference): boolean {
  const found = allowanceOf(allowed, name, difference);
  if (found) used.add(found.reason);
  return found !== undefined;
}
