import { type Message } from "../queue.ts";

/** A message that the server counts as handed out to this process. */
export interface Lease {
  readonly message: Message;
  readonly attempt: number;
  readonly failures: number;
  readonly firstAt: number;
  /** What an acknowledgement is sent to; the newest one, where the server has handed it out again. */
  reply: string;
  readonly order: string | undefined;
  /** Of its owner's share. */
  readonly bytes: number;
  /** `ready`: for `next`; `held`: behind an earlier one of its order; `waiting`: for its next attempt. */
  state: "ready" | "out" | "held" | "waiting";
}

export const rowBytes = 1_024;
