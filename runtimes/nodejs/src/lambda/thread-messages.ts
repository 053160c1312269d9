/** What the threads of a Lambda handler say to each other. */
import { type LambdaCall } from "./event-line.ts";

/** The variable by which the runtime learns that it is started in such a thread: the Function's directory. */
export const threadVariable = "SPRY_EVENT_THREAD";

export type ToThread = EventMessage | "stop";

export interface EventMessage extends LambdaCall {
  /** Of its request, for the log. */
  requestId: string;
  /** What requests carry that the handler sends, if its request is part of a trace. */
  trace: readonly (readonly [name: string, value: string])[] | undefined;
}

/** `error` is described with its stack; `text` was thrown as it is. */
export type FromThread = "ready" | { result: unknown } | { error: string } | { text: string };
