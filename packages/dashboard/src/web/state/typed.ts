/**
 * What the user has typed and not applied, by name. It outlives a reload, a closed tab, and the end of a connection or a login; it is
 * shown to the same user only, for seven days. Each tab has its own: that of other tabs is offered, and never overwritten.
 */
import { effect, signal } from "@preact/signals";
import { asUser } from "../api/client.ts";
import { isLeaving, isLoggedIn, onLeave } from "../session/login.ts";
import { EncryptedStore, type StoredValue, type StoreKey } from "./encrypted-store.ts";
import { newTab, openTabs, ownTab } from "./own-tab.ts";
import { fit, fitted, type Shape } from "./shape.ts";
import { forgetStored, store, stored, storedNames } from "./tab-storage.ts";

/** Whether what was stored before has been read, or cannot be. */
export const isRead = signal(false);
const typed = signal<ReadonlyMap<string, unknown>>(new Map());
/** Of other tabs. */
const elsewhere = signal<readonly StoredValue[]>([]);
/** Those that the browser has no room for, or does not store at all: closing the tab loses them. */
export const unstored = signal<ReadonlySet<string>>(new Set());
/** Those that are not stored yet, or not as they are now. */
export const unfinished = signal<ReadonlySet<string>>(new Set());

/** By the beginning of the name, so that a value of another version of the page cannot throw in a view. */
const shapes = new Map<string, Shape>();
export const declareTyped = (beginning: string, shape: Shape): void =>
  void shapes.set(beginning, shape);

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type that the declared shape describes
export const typedAs = <T>(name: string): T | undefined => typed.value.get(name) as T | undefined;
export const typedNames = (beginning: string): string[] =>
  [...typed.value.keys()].filter((name) => name.startsWith(beginning));
export const typedElsewhere = (beginning: string): StoredValue[] =>
  elsewhere.value.filter(({ name }) => name.startsWith(beginning));

/** Undefined removes it. It is stored in pauses: a source of a megabyte takes longer than a key may take. */
export function keepTyped(name: string, value: object | undefined): void {
  const next = new Map(typed.value);
  if (value === undefined) next.delete(name);
  else next.set(name, value);
  typed.value = next;
  unfinished.value = withOrWithout(unfinished.value, name, true);
  clearTimeout(timer);
  firstAt ||= performance.now();
  const left = firstAt + maxWaitMs - performance.now();
  timer = setTimeout(() => void storeTyped(), Math.max(Math.min(pauseMs, left), 0));
}

const pauseMs = 300;
/** Of what is typed without a pause. */
const maxWaitMs = 5_000;
let firstAt = 0;
const retryMs = 5_000;
const maxRetryMs = 300_000;
let timer: ReturnType<typeof setTimeout> | undefined;
let writing: Promise<unknown> = Promise.resolve();
let vault: EncryptedStore | undefined;
let tab = "";
/** Who has logged in here; empty as long as that is not known. */
let owner = "";

/** Stores everything now. */
export function storeTyped(): Promise<unknown> {
  clearTimeout(timer);
  firstAt = 0;
  for (const name of unfinished.value) writing = writing.then(() => write(name));
  return writing;
}

async function write(name: string): Promise<void> {
  const value = typed.value.get(name);
  let isStored = value === undefined;
  try {
    if (value === undefined) await vault?.remove(tab, name);
    else await vault?.put(tab, name, value, () => !isLeaving.value);
    isStored ||= vault !== undefined;
  } catch {
    isStored = false;
  }
  // Until it is known who has logged in, nothing can be stored, and nothing has failed either.
  if (isRead.value) unstored.value = withOrWithout(unstored.value, name, !isStored);
  if (!isStored) return;
  store(handOver + name, undefined);
  if (typed.value.get(name) !== value) return;
  unfinished.value = withOrWithout(unfinished.value, name, false);
  // oxlint-disable-next-line require-post-message-target-origin -- a channel, not a window
  channel.postMessage({ owner, tab, name } satisfies Changed);
}

function withOrWithout(all: ReadonlySet<string>, name: string, isIn: boolean): ReadonlySet<string> {
  if (all.has(name) === isIn) return all;
  const next = new Set(all);
  if (isIn) next.add(name);
  else next.delete(name);
  return next;
}

/** What is typed in the last moment is not encrypted in time: until the next page has stored it, it is in the tab. */
const handOver = "typed-last.";
const handOverShape = { "owner!": "text", value: "any" } as const;
addEventListener("pagehide", () => {
  if (isLeaving.value) return;
  for (const name of unfinished.value)
    store(handOver + name, { owner, value: typed.value.get(name) });
});
addEventListener("beforeunload", (event) => {
  void storeTyped();
  if (unstored.value.size > 0 && !isLeaving.value) event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) void storeTyped();
});

effect(() => {
  if (isLoggedIn.value) void begin();
});
onLeave(async () => {
  await vault?.clear();
});

const keyShape = { "platform!": "text", "user!": "text", "key!": "text" } as const;

async function begin(againMs = retryMs): Promise<void> {
  // Whatever the browser does: a Function can be looked at.
  setTimeout(() => (isRead.value = true), retryMs);
  const key = await readKey().catch(() => undefined);
  if (key) {
    const last = stored<{ id: string }>("owner", { "id!": "text" })?.id;
    if (last !== undefined && last !== key.user) return giveUpTab();
    owner = key.user;
    store("owner", { id: owner });
    // Where the browser stores nothing, it is said when something is typed.
    if (!vault) await readOnce(key);
  } else if (isLoggedIn.value)
    setTimeout(() => void begin(Math.min(againMs * 2, maxRetryMs)), againMs);
  takeOver();
  isRead.value = true;
  if (unfinished.value.size > 0) await storeTyped();
}

async function readKey(): Promise<StoreKey> {
  const signal = AbortSignal.timeout(retryMs);
  const response = await asUser("/drafts/key", { method: "POST", signal });
  if (!response.ok) throw new Error(`the server responded with ${response.status}`);
  return fitted<StoreKey>(keyShape, await response.json());
}

/** After another user's login the page begins again, with nothing of the one before. */
async function giveUpTab(): Promise<void> {
  await storeTyped();
  isLeaving.value = true;
  forgetStored();
  location.reload();
}

let reading: Promise<void> | undefined;

/** A login may be seen twice while the page loads: the second reading would take the first one's tab for another. */
function readOnce(key: StoreKey): Promise<void> {
  reading ??= readStored(key)
    .catch(() => {})
    .finally(() => (reading = undefined));
  return reading;
}

async function readStored(key: StoreKey): Promise<void> {
  const opened = await EncryptedStore.open(key);
  const all = await opened.all();
  // What has been typed meanwhile must not replace what was stored.
  const isLate = all.some((each) => typed.value.has(each.name));
  tab = await (isLate ? newTab() : ownTab());
  const own = all.filter((each) => each.tab === tab && !typed.value.has(each.name));
  typed.value = new Map([
    ...own.flatMap(({ name, value }): [string, unknown][] => {
      const found = fit(shapeOf(name), value);
      return found === undefined ? [] : [[name, found]];
    }),
    ...typed.value,
  ]);
  elsewhere.value = all.filter((each) => each.tab !== tab).flatMap(usable);
  vault = opened;
}

/** From the page before a reload. */
function takeOver(): void {
  for (const name of storedNames(handOver)) {
    const last = stored<{ owner: string; value?: unknown }>(name, handOverShape);
    const typedName = name.slice(handOver.length);
    if (last?.owner !== owner || unfinished.value.has(typedName)) continue;
    keepTyped(typedName, fit(shapeOf(typedName), last.value) as object | undefined);
  }
}

const shapeOf = (name: string): Shape =>
  [...shapes].find(([beginning]) => name.startsWith(beginning))?.[1] ?? "any";

const usable = (each: StoredValue): StoredValue[] => {
  const value = fit(shapeOf(each.name), each.value);
  return value === undefined ? [] : [{ ...each, value }];
};

interface Changed {
  owner: string;
  tab: string;
  name: string;
}

const channel = new BroadcastChannel("spry.typed");
channel.addEventListener("message", ({ data }: MessageEvent<Changed>) => {
  if (data.owner === owner && data.tab !== tab) void readAgain(data);
});

async function readAgain({ tab, name }: Pick<StoredValue, "tab" | "name">): Promise<void> {
  const found = await vault?.get(tab, name).catch(() => undefined);
  const others = elsewhere.value.filter((each) => each.tab !== tab || each.name !== name);
  elsewhere.value = [...others, ...(found ? usable(found) : [])];
}

/** Removes it there, where that tab has been closed; the user of an open one goes on with it. */
export async function takeFrom({ tab, name }: StoredValue): Promise<void> {
  if ((await openTabs()).has(tab)) return;
  await vault?.remove(tab, name);
  await readAgain({ tab, name });
  // oxlint-disable-next-line require-post-message-target-origin -- a channel, not a window
  channel.postMessage({ owner, tab, name } satisfies Changed);
}
