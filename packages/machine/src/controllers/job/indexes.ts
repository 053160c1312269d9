import { type Job, type Pod } from "@spry/kube";

/** On a Pod of an Indexed Job, as annotation and label: which part of the work it does. */
export const indexAnnotation = "batch.kubernetes.io/job-completion-index";
/** With `backoffLimitPerIndex`: how many Pods of this index failed before, counted and ignored. */
export const failureCountAnnotation = "batch.kubernetes.io/job-index-failure-count";
export const ignoredFailureCountAnnotation = "batch.kubernetes.io/job-index-ignored-failure-count";

/** Inclusive ranges, ascending, that neither touch nor overlap. */
export type Indexes = readonly (readonly [first: number, last: number])[];

export function isIndexed(job: Job): boolean {
  return job.spec?.completionMode === "Indexed";
}

/** Reads `status.completedIndexes`, `failedIndexes` and rules: `1,3-5,7`. Other text is left out. */
export function parseIndexes(text: string | undefined, completions: number): Indexes {
  const found = (text ?? "").split(",").flatMap((part): [number, number][] => {
    const match = /^(\d{1,10})(?:-(\d{1,10}))?$/.exec(part);
    if (!match) return [];
    const first = Number(match[1]);
    const last = Math.min(Number(match[2] ?? match[1]), completions - 1);
    return first <= last ? [[first, last]] : [];
  });
  return merged(found);
}

/** `1,3-5,7`; two neighbours are written apart, as Kubernetes does. */
export function formatIndexes(indexes: Indexes): string {
  return indexes
    .map(([first, last]) =>
      first === last ? `${first}` : `${first}${last === first + 1 ? "," : "-"}${last}`,
    )
    .join(",");
}

export function withIndexes(indexes: Indexes, added: readonly number[]): Indexes {
  return merged([...indexes, ...added.map((index): [number, number] => [index, index])]);
}

export function unionOf(...sets: readonly Indexes[]): Indexes {
  return merged(sets.flat());
}

export function hasIndex(indexes: Indexes, index: number): boolean {
  return indexes.some(([first, last]) => first <= index && index <= last);
}

export function countIndexes(indexes: Indexes): number {
  return indexes.reduce((sum, [first, last]) => sum + last - first + 1, 0);
}

export function countCommon(a: Indexes, b: Indexes): number {
  let count = 0;
  for (const [first, last] of a)
    for (const [from, to] of b)
      count += Math.max(0, Math.min(last, to) - Math.max(first, from) + 1);
  return count;
}

/** The lowest indexes below `completions` that are not taken. */
export function firstFree(taken: Indexes, count: number, completions: number): number[] {
  const free: number[] = [];
  let candidate = 0;
  for (const [first, last] of [...taken, [completions, completions] as const]) {
    const end = Math.min(first, completions);
    for (; candidate < end && free.length < count; candidate++) free.push(candidate);
    if (free.length >= count) break;
    candidate = Math.max(candidate, last + 1);
  }
  return free;
}

/** The index of a Pod; undefined when it has none, or one that the Job does not have. */
export function indexOf(pod: Pod, job: Job): number | undefined {
  const text = pod.metadata.annotations?.[indexAnnotation] ?? "";
  const index = /^\d{1,10}$/.test(text) ? Number(text) : undefined;
  return index !== undefined && index < (job.spec?.completions ?? 0) ? index : undefined;
}

/** How many Pods failed before this one at its index; of either kind when `all` is set. */
export function earlierFailures(pod: Pod, all = false): number {
  const read = (name: string) => {
    const text = pod.metadata.annotations?.[name] ?? "";
    return /^\d{1,9}$/.test(text) ? Number(text) : 0;
  };
  return read(failureCountAnnotation) + (all ? read(ignoredFailureCountAnnotation) : 0);
}

function merged(ranges: readonly (readonly [number, number])[]): Indexes {
  const result: [number, number][] = [];
  for (const [first, last] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const before = result.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else result.push([first, last]);
  }
  return result;
}
