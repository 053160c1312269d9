/** Changes of Functions that have been typed and not applied (state/typed.ts). */
import { type Function, functions } from "@spry/function/browser";
import { deepEqual, isConflict, mergePatchBetween } from "@spry/kube/browser";
import { client } from "../api/client.ts";
import { type Desired, desiredOf, desiredShape, isChanged } from "./changes.ts";
import type { StoredValue } from "./encrypted-store.ts";
import type { Clash } from "./merge.ts";
import { declareTyped, keepTyped, takeFrom, typedAs, typedElsewhere, typedNames } from "./typed.ts";

export interface Draft {
  /** Of the Function: one that is made again under the same name is another one. */
  uid: string;
  namespace: string;
  name: string;
  /** As the Function was when the user began. */
  base: Desired;
  edited: Desired;
  /** The YAML as typed, while it cannot be read. */
  yaml?: string;
}

const beginning = "draft.";
declareTyped(beginning, {
  "uid!": "text",
  "namespace!": "text",
  "name!": "text",
  "base!": desiredShape,
  "edited!": desiredShape,
  yaml: "text",
});
const nameOf = (uid: string): string => beginning + uid;
/** Under which it is typed. */
export const draftName = ({ metadata }: Pick<Function, "metadata">): string =>
  nameOf(metadata.uid ?? "");

/** Read in a view, it is shown as it changes. */
export const draftOf = (fn: Pick<Function, "metadata">): { readonly value: Draft | undefined } => ({
  get value() {
    return typedAs<Draft>(draftName(fn));
  },
});

/** A draft of another tab. */
export interface DraftElsewhere {
  draft: Draft;
  at: StoredValue;
}

/** Of this Function, unless they are what this tab has, too. */
export function draftsElsewhere(fn: Pick<Function, "metadata">): DraftElsewhere[] {
  const own = draftOf(fn).value;
  return typedElsewhere(draftName(fn))
    .map((at) => ({ draft: at.value as Draft, at }))
    .filter(({ draft }) => !deepEqual([draft.edited, draft.yaml], [own?.edited, own?.yaml]));
}

/** Drafts of a Function of this name that has been deleted, of all tabs: all but those of `uid`. */
export function draftsOfDeleted(namespace: string, name: string, uid = ""): Draft[] {
  const own = typedNames(beginning).map((each) => typedAs<Draft>(each));
  const others = typedElsewhere(beginning).map(({ value }) => value as Draft);
  return [...own, ...others].filter(
    (draft) =>
      draft !== undefined &&
      draft.namespace === namespace &&
      draft.name === name &&
      draft.uid !== uid,
  ) as Draft[];
}

/** Records an edit. A draft that no longer differs from its base is discarded. */
export function edit(fn: Function, change: (edited: Desired) => Desired, yaml?: string): void {
  const before = draftOf(fn).value;
  const base = before?.base ?? desiredOf(fn);
  const edited = change(before?.edited ?? base);
  if (yaml === undefined && !isChanged(base, edited)) return discard(fn);
  keepDraft(fn, { base, edited, ...(yaml !== undefined && { yaml }) });
}

export function keepDraft(fn: Function, content: Pick<Draft, "base" | "edited" | "yaml">): void {
  const { uid = "", namespace = "", name = "" } = fn.metadata;
  const { base, edited, yaml } = content;
  const draft = { uid, namespace, name, base, edited, ...(yaml !== undefined && { yaml }) };
  keepTyped(nameOf(uid), draft satisfies Draft);
}

export const discard = (fn: Pick<Function, "metadata">): void =>
  keepTyped(draftName(fn), undefined);

/** Of a Function that has been deleted: in all tabs that have been closed. */
export function discardDraft(uid: string): void {
  keepTyped(nameOf(uid), undefined);
  for (const each of typedElsewhere(nameOf(uid))) void takeFrom(each);
}

/** Makes the present Function the base of the edit. */
export function rebase(fn: Function, edited: Desired): void {
  discard(fn);
  if (isChanged(desiredOf(fn), edited)) keepDraft(fn, { base: desiredOf(fn), edited });
}

/** After `draft` was written, as a part of `fn`: what has been typed since stays, as a change of that. */
export async function continueFrom(fn: Function, draft: Draft): Promise<void> {
  const { mergeThreeWays } = await import("./merge.ts");
  const { value } = draftOf(fn);
  if (!value || value === draft) return discard(fn);
  const { merged } = mergeThreeWays(draft.edited, value.edited, desiredOf(fn));
  rebase(fn, merged);
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
