/** A few hundred requests made from the samples by chance; the seed makes them the same every time. */
import { type Case, at, patch, post } from "../step.ts";
import { sampleOf, samples } from "./objects.ts";

const seed = 20_260;
const perKind = 18;
const odd: unknown[] = [
  "",
  "UPPER",
  "a b",
  -1,
  0,
  1.5,
  70_000,
  true,
  null,
  {},
  [],
  [null],
  "x".repeat(300),
  "1",
  { a: "b" },
];

/** A small generator of numbers in [0, 1) (mulberry32). */
function randomOf(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Place = { parent: Record<string, unknown>; key: string };

function placesOf(value: unknown, found: Place[] = []): Place[] {
  if (typeof value !== "object" || value === null) return found;
  for (const [key, child] of Object.entries(value)) {
    if (key !== "apiVersion" && key !== "kind")
      found.push({ parent: value as Record<string, unknown>, key });
    placesOf(child, found);
  }
  return found;
}

function mutated(object: Record<string, unknown>, random: () => number): Record<string, unknown> {
  const pick = <T>(list: T[]): T => list[Math.floor(random() * list.length)] as T;
  const { parent, key } = pick(placesOf(object));
  const choice = random();
  if (choice < 0.2) delete parent[key];
  else if (choice < 0.3) parent.nonsense = pick(odd);
  else parent[key] = pick(odd);
  return object;
}

export const generated: Case[] = Object.entries(samples).map(
  ([kind, { groupVersion, plural }], index) => {
    const random = randomOf(seed + index);
    const all = at(groupVersion, plural);
    const modes = ["", "&fieldValidation=Strict", "&fieldValidation=Ignore"];
    return {
      name: `variations of a ${kind}`,
      steps: [
        post(all, sampleOf(kind).object),
        ...Array.from({ length: perKind }, (_, number) => {
          const object = mutated(sampleOf(kind).object, random);
          if (random() < 0.2) mutated(object, random);
          const query = `dryRun=All${modes[number % modes.length]}`;
          if (number % 3 !== 2) return post(`${all}?${query}`, object);
          const type = number % 2 === 0 ? "merge" : "strategic";
          return patch(type, `${all}/one?${query}`, {
            ...object,
            metadata: { labels: { n: String(number) } },
          });
        }),
      ],
    };
  },
);
