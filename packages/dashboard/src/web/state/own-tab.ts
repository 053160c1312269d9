/** Which tab this is: the same after a reload, and another one where a tab has been duplicated. */
import { store, stored } from "./tab-storage.ts";

const storageKey = "tab";
/** For the page before a reload, which may not have ended yet. */
const patienceMs = 500;
const lockOf = (tab: string): string => `spry.tab.${tab}`;

/** Holds the name of this tab until the page ends. */
export async function ownTab(): Promise<string> {
  const last = stored<{ id: string }>(storageKey, { "id!": "text" })?.id;
  if (last !== undefined && (await hold(last))) return last;
  return newTab();
}

export async function newTab(): Promise<string> {
  const id = crypto.randomUUID();
  store(storageKey, { id });
  await hold(id);
  return id;
}

/** The tabs that are open. */
export async function openTabs(): Promise<ReadonlySet<string>> {
  const { held = [] } = await navigator.locks.query();
  return new Set(held.map(({ name = "" }) => name.slice(lockOf("").length)));
}

function hold(tab: string): Promise<boolean> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(patienceMs);
    const until = () => {
      resolve(true);
      return new Promise<never>(() => {});
    };
    navigator.locks.request(lockOf(tab), { signal }, until).catch(() => resolve(false));
  });
}
