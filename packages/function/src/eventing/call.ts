/** A call that may wait, as it is kept and shown (docs/contributing/rooms/eventing.md#administration). */
export interface Call {
  id: string;
  /** Of the Function; its namespace is that of the call. */
  function: string;
  method: string;
  path: string;
  /** `waiting`: also for its next attempt. */
  state: "waiting" | "running" | "succeeded" | "failed" | "cancelled";
  acceptedAt: string;
  /** Not before. */
  notBefore?: string;
  startedAt?: string;
  endedAt?: string;
  attempts: number;
  /** Of the last attempt: the Function's response. */
  response?: CallResponse;
  /** Why the last attempt got no response. */
  error?: string;
  /** Which schedule of the Function it is a run of, and when that was due. */
  schedule?: { name: string; dueAt: string };
  idempotencyKey?: string;
}

export interface CallResponse {
  status: number;
  headers: Record<string, string>;
  /** As text if it is one, otherwise in base64. */
  body?: string;
  bodyBase64?: string;
  /** The rest is missing. */
  isCut?: boolean;
}

export const hasEnded = ({ state }: Pick<Call, "state">): boolean =>
  state === "succeeded" || state === "failed" || state === "cancelled";
