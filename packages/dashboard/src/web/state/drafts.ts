/**
 * What has been typed and not applied. It is in this tab's session storage: a reload, or the end of a connection or a login,
 * does not lose it.
 */
import { type Signal, signal } from "@preact/signals";
import { type Function, functions } from "@spry/function/browser";
import { isConflict, mergePatchBetween } from "@spry/kube/browser";
import { client } from "../api/client.ts";
import { isLeaving } from "../session/login.ts";
import { type Desired, desiredOf, desiredShape, isChanged } from "./changes.ts";
import type { Clash } from "./merge.ts";
import { store, stored, storedNames } from "./tab-storage.ts";

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

const draftShape = {
  "uid!": "text",
  "namespace!": "text",
  "name!": "text",
  "base!": desiredShape,
  "edited!": desiredShape,
  yaml: "text",
} as const;

const drafts = new Map<string, Signal<Draft | undefined>>();
const storageKey = (uid: string): string => `draft.${uid}`;
/** Those that the browser has no room for, or does not store at all: closing the tab loses them. */
export const unstored = signal<ReadonlySet<string>>(new Set());

const uidOf = ({ metadata }: Pick<Function, "metadata">): string => metadata.uid ?? "";

export const draftOf = (fn: Pick<Function, "metadata">): Signal<Draft | undefined> =>
  draftWith(uidOf(fn));

function draftWith(uid: string): Signal<Draft | undefined> {
  let draft = drafts.get(uid);
  if (!draft) {
    draft = signal(stored<Draft>(storageKey(uid), draftShape));
    drafts.set(uid, draft);
  }
  return draft;
}

/** Drafts of a Function of this name that has been deleted: all but that of `uid`. */
export function draftsOfDeleted(namespace: string, name: string, uid = ""): Draft[] {
  const known = storedNames("draft.").map((key) => key.slice("draft.".length));
  return [...new Set([...known, ...drafts.keys()])].flatMap((each) => {
    const { value } = draftWith(each);
    return value?.namespace === namespace && value.name === name && value.uid !== uid
      ? [value]
      : [];
  });
}

/** Records an edit. A draft that no longer differs from its base is discarded. */
export function edit(fn: Function, change: (edited: Desired) => Desired, yaml?: string): void {
  const before = draftOf(fn).value;
  const base = before?.base ?? desiredOf(fn);
  const edited = change(before?.edited ?? base);
  if (yaml === undefined && !isChanged(base, edited)) return discard(fn);
  keep(fn, { base, edited, ...(yaml !== undefined && { yaml }) });
}

function keep(fn: Function, content: Pick<Draft, "base" | "edited" | "yaml">): void {
  const { namespace = "", name = "" } = fn.metadata;
  const uid = uidOf(fn);
  const draft: Draft = { uid, namespace, name, ...content };
  draftOf(fn).value = draft;
  waiting.add(uid);
  timer ??= setTimeout(storeWaiting, storeMs);
}

export const discard = (fn: Pick<Function, "metadata">): void => discardDraft(uidOf(fn));

export function discardDraft(uid: string): void {
  draftWith(uid).value = undefined;
  waiting.delete(uid);
  store(storageKey(uid), undefined);
  setStored(uid, true);
}

function setStored(uid: string, isStored: boolean): void {
  if (unstored.value.has(uid) !== isStored) return;
  const next = new Set(unstored.value);
  if (isStored) next.delete(uid);
  else next.add(uid);
  unstored.value = next;
}

/** A source of a megabyte takes longer to store than a key may take: it is stored in pauses, and before the page is left. */
const storeMs = 300;
const waiting = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

export function storeWaiting(): void {
  clearTimeout(timer);
  timer = undefined;
  for (const uid of waiting) {
    waiting.delete(uid);
    // After a logout nothing is stored any more.
    if (!isLeaving.value) setStored(uid, store(storageKey(uid), draftWith(uid).value));
  }
}
addEventListener("pagehide", storeWaiting);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) storeWaiting();
});
addEventListener("beforeunload", (event) => {
  storeWaiting();
  if (unstored.value.size > 0 && !isLeaving.value) event.preventDefault();
});

/** Makes the present Function the base of the edit. */
export function rebase(fn: Function, edited: Desired): void {
  discard(fn);
  if (isChanged(desiredOf(fn), edited)) keep(fn, { base: desiredOf(fn), edited });
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
