import { type ConsumerOptions } from "@spry/queue";

export { type Call, type CallResponse, hasEnded } from "@spry/function";

/** How a call is made, besides the request itself; part of its message. */
export interface CallOptions {
  retries: number;
  retentionMs: number;
  callbackUrl?: string;
  onSuccess?: string;
  onFailure?: string;
  /** It was asked for by a program of this machine: results may be sent to the machine's own addresses. */
  isOfMachine?: boolean;
}

export const callBounds = {
  bodyBytes: 1024 ** 2,
  resultBytes: 1024 ** 2,
  headerBytes: 24 * 1024,
  urlLength: 2_048,
  keyLength: 255,
  retries: 100,
  delaySeconds: 7 * 86_400,
  deadlineSeconds: 7 * 86_400,
  retentionSeconds: 7 * 86_400,
  defaultRetentionSeconds: 86_400,
  defaultRetries: 3,
  inFlightOfFunction: 10,
  timeoutMs: 300_000,
} as const;

export const callBucket = (namespace: string): string => `calls/${namespace}`;
export const keyBucket = (namespace: string): string => `call-keys/${namespace}`;
export const callSubject = (key: string): string => `call:${key}`;
export const callsConsumer = (key: string): string => `calls/${key}`;
/** Name and options of the consumer of a Function's calls. */
export const consumerOfCalls = (key: string): [string, ConsumerOptions] => [
  callsConsumer(key),
  { subjects: [callSubject(key)], from: "now", owner: key.split("/")[0] },
];
export const callsConsumerPrefix = "calls/";
/** When a call ends that has not been sent by then: a message for each call whose client says until when. */
export const deadlineSubject = "call-deadline";
export const deadlineConsumer = "call-deadlines";
export const callbackSubject = "callback";
export const callbackConsumer = "callbacks";
