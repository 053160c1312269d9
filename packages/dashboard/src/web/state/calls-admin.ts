/** Calls that may wait, in the administration of events (docs/contributing/rooms/eventing.md#administration). */
import { adminJson } from "../api/admin.ts";
import { type Tone } from "./function-state.ts";

export interface WaitingCall {
  id: string;
  function: string;
  method: string;
  path: string;
  state: "waiting" | "running" | "succeeded" | "failed" | "cancelled";
  acceptedAt: string;
  notBefore?: string;
  startedAt?: string;
  endedAt?: string;
  attempts: number;
  /** In a list with its status only. */
  response?: WaitingCallResponse;
  error?: string;
  schedule?: { name: string; dueAt: string };
}

export interface WaitingCallResponse {
  status: number;
  /** As text if it is one, otherwise in base64. */
  body?: string;
  bodyBase64?: string;
  /** The rest is missing. */
  isCut?: boolean;
}

const base = (namespace: string) => `/events/v1/namespaces/${encodeURIComponent(namespace)}`;
const pageSize = 500;
/** Older calls are left out: their results are kept for a day. */
const maxPages = 4;

/** Of a namespace, the newest first. */
export async function callsIn(namespace: string): Promise<WaitingCall[]> {
  const found: WaitingCall[] = [];
  let after = "";
  for (let page = 0; page < maxPages; page++) {
    const path = `${base(namespace)}/calls?limit=${pageSize}&after=${encodeURIComponent(after)}`;
    const { items, next } = await adminJson<{ items: WaitingCall[]; next?: string }>(path);
    found.push(...items);
    if (next === undefined) break;
    after = next;
  }
  return found.sort((a, b) => (a.acceptedAt < b.acceptedAt ? 1 : -1));
}

export const callIn = (namespace: string, id: string): Promise<WaitingCall> =>
  adminJson(`${base(namespace)}/calls/${id}`);

export const cancelCall = (namespace: string, id: string): Promise<unknown> =>
  adminJson(`${base(namespace)}/calls/${id}/cancel`, {});

/** Starts a run of a schedule now. */
export const runSchedule = (
  { namespace, name }: { namespace: string; name: string },
  schedule: string,
): Promise<{ call: string }> =>
  adminJson(`${base(namespace)}/functions/${name}/schedules/${schedule}/run`, {});

export const hasEnded = ({ state }: WaitingCall): boolean =>
  state !== "waiting" && state !== "running";

export const toneOfCall = (state: WaitingCall["state"]): Tone =>
  ({ waiting: "idle", running: "busy", succeeded: "good", failed: "bad", cancelled: "idle" })[
    state
  ] as Tone;
