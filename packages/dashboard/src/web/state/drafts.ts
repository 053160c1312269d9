/**
 * What has been typed and not applied. It is in this tab's session storage: a reload, or the end of a connection or a login,
 * does not lose it.
 */
import { type Signal, signal } from "@preact/signals";
import { type Function, functions } from "@spry/function/browser";
import { isConflict, mergePatchBetween } from "@spry/kube/browser";
import { client } from "../api/client.ts";
import { type Desired, desiredOf, desiredShape, isChanged } from "./changes.ts";
import type { Clash } from "./merge.ts";
import { store, stored } from "./tab-storage.ts";

export interface Draft {
  /** As the Function was when the user began. */
  base: Desired;
  /** The Function's generation at that time. */
  generation: number;
  edited: Desired;
  /** The YAML as typed, while it cannot be read. */
  yaml?: string;
}

const draftShape = {
  "base!": desiredShape,
  "generation!": "number",
  "edited!": desiredShape,
  yaml: "text",
} as const;

const drafts = new Map<string, Signal<Draft | undefined>>();
const storageKey = (key: string): string => `draft.${key}`;

/** By `namespace/name`. */
export function draftOf(key: string): Signal<Draft | undefined> {
  let draft = drafts.get(key);
  if (!draft) {
    draft = signal(stored<Draft>(storageKey(key), draftShape));
    drafts.set(key, draft);
  }
  return draft;
}

/** Records an edit. A draft that no longer differs from its base is discarded. */
export function edit(fn: Function, change: (edited: Desired) => Desired, yaml?: string): void {
  const key = `${fn.metadata.namespace}/${fn.metadata.name}`;
  const draft = draftOf(key);
  const base = draft.value?.base ?? desiredOf(fn);
  const generation = draft.value?.generation ?? fn.metadata.generation ?? 0;
  const edited = change(draft.value?.edited ?? base);
  if (yaml === undefined && !isChanged(base, edited)) return discard(key);
  draft.value = { base, generation, edited, ...(yaml !== undefined && { yaml }) };
  store(storageKey(key), draft.value);
}

export function discard(key: string): void {
  draftOf(key).value = undefined;
  store(storageKey(key), undefined);
}

/** Makes the present Function the base of the edit. */
export function rebase(fn: Function, edited: Desired): void {
  discard(`${fn.metadata.namespace}/${fn.metadata.name}`);
  edit(fn, () => edited);
}

/** Fields that another user has changed, too, since the edit began. */
export interface Clashing {
  clashes: Clash[];
  theirs: Function;
}

export type Saved = { fn: Function } | Clashing;

/** A conditional write can fail several times, because the status of a Function is written often. */
const maxAttempts = 10;

/**
 * Writes what the user has changed, and nothing else: others' changes of other fields, entries and lines stay. Where both have
 * changed the same, nothing is written. `dryRun`: the API server only checks it.
 */
export async function save(
  target: { namespace: string; name: string },
  { base, edited }: Pick<Draft, "base" | "edited">,
  { dryRun = false } = {},
): Promise<Saved> {
  const { mergeThreeWays } = await import("./merge.ts");
  for (let attempt = 1; ; attempt++) {
    const current = await client.get(functions, target);
    const theirs = desiredOf(current);
    const { merged, clashes } = mergeThreeWays(base, edited, theirs);
    if (clashes.length > 0) return { clashes, theirs: current };
    const { spec, metadata } = mergePatchBetween(theirs, merged) as Partial<Desired>;
    const patch = {
      ...(spec !== undefined && { spec }),
      metadata: { ...metadata, resourceVersion: current.metadata.resourceVersion },
    };
    try {
      return { fn: await client.patch(functions, target, patch, { dryRun }) };
    } catch (error) {
      if (!isConflict(error) || attempt >= maxAttempts) throw error;
    }
  }
}
