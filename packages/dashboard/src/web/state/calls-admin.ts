/** Calls that may wait, in the administration of events (docs/contributing/rooms/eventing.md#administration). */
import { type Call } from "@spry/function/browser";
import { adminJson } from "../api/admin.ts";
import { type Tone } from "./function-state.ts";

const base = (namespace: string) => `/events/v1/namespaces/${encodeURIComponent(namespace)}`;
const pageSize = 500;
/** Older calls are left out: their results are kept for a day. */
const maxPages = 4;

/** Of a namespace, the newest first. */
export async function callsIn(namespace: string): Promise<Call[]> {
  const found: Call[] = [];
  let after = "";
  for (let page = 0; page < maxPages; page++) {
    const path = `${base(namespace)}/calls?limit=${pageSize}&after=${encodeURIComponent(after)}`;
    const { items, next } = await adminJson<{ items: Call[]; next?: string }>(path);
    found.push(...items);
    if (next === undefined) break;
    after = next;
  }
  return found.sort((a, b) => (a.acceptedAt < b.acceptedAt ? 1 : -1));
}

export const callIn = (namespace: string, id: string): Promise<Call> =>
  adminJson(`${base(namespace)}/calls/${id}`);

export const cancelCall = (namespace: string, id: string): Promise<unknown> =>
  adminJson(`${base(namespace)}/calls/${id}/cancel`, {});

/** Starts a run of a schedule now. */
export const runSchedule = (
  { namespace, name }: { namespace: string; name: string },
  schedule: string,
): Promise<{ call: string }> =>
  adminJson(`${base(namespace)}/functions/${name}/schedules/${schedule}/run`, {});

export const toneOfCall = (state: Call["state"]): Tone =>
  ({ waiting: "idle", running: "busy", succeeded: "good", failed: "bad", cancelled: "idle" })[
    state
  ] as Tone;
