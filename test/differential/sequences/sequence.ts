import { setTimeout as pause } from "node:timers/promises";
import { messageOf, resources } from "@spry/kube";
import { type Difference, differencesBetween } from "../compare.ts";
import { factsOf } from "./facts.ts";
import { Scene } from "./scene.ts";
import { type Sides } from "./sides.ts";

/** What people or the node do next, and how long the controllers may take until both sides have come to the same. */
export interface Step {
  name: string;
  act: (scene: Scene) => Promise<unknown>;
  withinMs?: number;
}

export interface Sequence {
  name: string;
  steps: Step[];
  /** For so long nothing may change before a step counts as over; longer than the controllers' own pauses. */
  quietMs?: number;
  /** Facts that a race between controllers decides, in the real cluster too. */
  chance?: RegExp;
}

export const step = (name: string, act: Step["act"], withinMs?: number): Step => ({
  name,
  act,
  ...(withinMs === undefined ? {} : { withinMs }),
});

const defaultQuietMs = 400;
const defaultWithinMs = 30_000;
const pollMs = 50;

export interface Outcome {
  /** Differences that are listed; each was seen at the end of some step. */
  allowed: Difference[];
  /** Those of the first step whose ends differ in anything else. */
  open: Difference[];
  step: string;
}

/**
 * Plays a case on both sides, step by step. A step is over when both sides have been quiet and say the same; what is
 * seen on the way depends on timing, so only its order per object is compared (`history of …`).
 */
export async function play(
  sides: Sides,
  { steps, quietMs = defaultQuietMs, chance }: Sequence,
  namespace: string,
  isAllowed: (difference: Difference) => boolean,
): Promise<Outcome> {
  const scenes = await Promise.all(
    [sides.embedded, sides.real].map(async ({ client, observer }) => {
      await client.create(resources.namespaces, { metadata: { name: namespace } });
      const scene = new Scene(client, namespace, observer.viewOf(namespace));
      await scene.until("the ServiceAccount", () =>
        client.get(resources.serviceAccounts, { namespace, name: "default" }).then(
          () => true,
          () => false,
        ),
      );
      return scene;
    }),
  );
  const [embedded, real] = scenes as [Scene, Scene];
  const allowed = new Map<string, Difference>();
  for (const { name, act, withinMs = defaultWithinMs } of steps) {
    await Promise.all(
      scenes.map((scene) =>
        act(scene).catch((cause: unknown) => {
          const side = scene === embedded ? "embedded" : "real";
          throw new Error(`${side}, "${name}": ${messageOf(cause)}`, { cause });
        }),
      ),
    );
    const begun = performance.now();
    let comparedAt = 0;
    for (;;) {
      await pause(pollMs);
      const now = performance.now();
      const late = now - begun > withinMs;
      const changedAt = Math.max(begun, ...scenes.map(({ view }) => view.changedAt));
      // What has not changed since it was compared differs as it did.
      if (!late && (now - changedAt < quietMs || comparedAt > changedAt)) continue;
      comparedAt = now;
      const all = differencesBetween(factsOf(embedded.view), factsOf(real.view));
      const differences = all.filter((each) => !chance?.test(each.path));
      const open = differences.filter((each) => !isAllowed(each));
      if (open.length > 0 && !late) continue;
      for (const each of differences) if (isAllowed(each)) allowed.set(each.path, each);
      if (open.length > 0) return { allowed: [...allowed.values()], open, step: name };
      break;
    }
  }
  return { allowed: [...allowed.values()], open: [], step: "" };
}
