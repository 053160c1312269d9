/** Asynchronous calls, in the administration of events (docs/contributing/rooms/eventing.md#administration). */
import { type Call } from "@spry/function/browser";
import { fitted } from "./shape.ts";
import { adminJson } from "../api/admin.ts";
import { type Tone } from "./function-state.ts";

const callShape = {
  "id!": "text",
  "function!": "text",
  "method!": "text",
  "path!": "text",
  "state!": "text",
  "acceptedAt!": "text",
  notBefore: "text",
  startedAt: "text",
  endedAt: "text",
  "attempts!": "number",
  response: { "status!": "number", body: "text", bodyBase64: "text", isCut: "flag" },
  reason: "text",
  error: "text",
  schedule: { name: "text", dueAt: "text" },
} as const;
const pageShape = { "items!": [callShape], next: "text" } as const;

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
    const answer = await adminJson(path);
    const { items, next } = fitted<{ items: Call[]; next?: string }>(pageShape, answer);
    found.push(...items);
    if (next === undefined) break;
    after = next;
  }
  return found.sort((a, b) => (a.acceptedAt < b.acceptedAt ? 1 : -1));
}

export const callIn = async (namespace: string, id: string): Promise<Call> =>
  fitted<Call>(callShape, await adminJson(`${base(namespace)}/calls/${id}`));

export const cancelCall = (namespace: string, id: string): Promise<unknown> =>
  adminJson(`${base(namespace)}/calls/${id}/cancel`, {});

/** Starts a run of a schedule now. */
export const runSchedule = (
  { namespace, name }: { namespace: string; name: string },
  schedule: string,
): Promise<{ call: string }> =>
  adminJson(`${base(namespace)}/functions/${name}/schedules/${schedule}/run`, {});

const tones: Record<string, Tone> = {
  waiting: "idle",
  running: "busy",
  succeeded: "good",
  failed: "bad",
  cancelled: "idle",
};
export const toneOfCall = (state: Call["state"]): Tone => tones[state] ?? "idle";
