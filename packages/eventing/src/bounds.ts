import { connectionLimit } from "@spry/kube";

/** What one request, event or Subscription may contain: enough for every user, and limited for the sake of others. */
export const bounds = {
  /** As the original's `MAX_REQUEST_SIZE`; JetStream's messages have the same limit. */
  eventBytes: 1024 ** 2,
  batchBytes: 8 * 1024 ** 2,
  batchEvents: 1_000,
  /** Context attributes of one event, and what they come to. */
  attributes: 64,
  attributeBytes: 2_048,
  allAttributeBytes: 24 * 1024,
  /** Of id, source and type: they are parts of keys. */
  nameLength: 500,
  subscriptionsOfNamespace: 500,
  types: 1_000,
  sinkLength: 2_048,
  filters: 32,
  inFlight: 1_000,
  connections: connectionLimit(2_000, 0.15),
  connectionsOfAddress: 1_000,
  /** Bodies of all requests to publish together; one address holds at most as much as remains free. */
  publisherBytes: 64 * 1024 ** 2,
} as const;
