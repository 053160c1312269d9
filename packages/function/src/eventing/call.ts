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
  /** It ends then if it has not reached its Function; a day after it was due where this is missing. */
  deadlineAt?: string;
  /** Requests that have reached the Function. */
  attempts: number;
  /** Of the last attempt: the Function's response. */
  response?: CallResponse;
  /** Why it waits, or has ended, without a response: UpperCamelCase. */
  reason?: string;
  /** Why the last attempt got no response. */
  error?: string;
  /** In place of `error`, for those who may not read what the Function's conditions say. */
  publicError?: string;
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
