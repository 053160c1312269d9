import { type Answer, type CallOptions } from "../../support/calls.ts";

/** A Function as a user brings it, and what it answers. */
export interface Sample {
  is: string;
  name: string;
  spec?: Record<string, unknown>;
  source: string;
  calls: { call?: CallOptions; answer: Partial<Answer> | Record<string, unknown> }[];
}

export const dependencies = (names: Record<string, string>, more = {}) =>
  JSON.stringify({ name: "sample", version: "1.0.0", dependencies: names, ...more });
export const json = { "content-type": "application/json" };
/** A CloudEvent in binary mode. */
export const bound = {
  "ce-specversion": "1.0",
  "ce-id": "7",
  "ce-source": "me",
  "ce-type": "ping",
};
