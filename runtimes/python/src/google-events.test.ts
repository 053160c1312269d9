/** Events of Google Cloud as functions of both signatures get them (contract 8.2); what Google's own package makes of them. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { missingPython, PythonRuntime } from "./testing.ts";

const functions = `
import json, functions_framework
def background(data, context):
    print("got", json.dumps({"data": data, "id": context.event_id, "time": context.timestamp, "type": context.event_type, "resource": context.resource}))
@functions_framework.cloud_event
def on_event(event):
    print("got", json.dumps({**event.get_attributes(), "data": event.data}))
`;

const pubsub = "type.googleapis.com/google.pubsub.v1.PubsubMessage";
const message = { data: "aGk=", messageId: "7", publishTime: "2026-01-02T03:04:05Z" };
const push = {
  message: { ...message, attributes: { a: "b" } },
  subscription: "projects/p/subscriptions/s",
};
const topic = "projects/p/topics/t";
const published = {
  context: {
    eventId: "7",
    timestamp: "2026-01-02T03:04:05Z",
    eventType: "google.pubsub.topic.publish",
    resource: { service: "pubsub.googleapis.com", name: topic, type: pubsub },
  },
  data: { "@type": pubsub, attributes: { a: "b" }, data: "aGk=" },
};
const written = {
  eventId: "8",
  timestamp: "now",
  eventType: "providers/cloud.firestore/eventTypes/document.write",
  resource: "projects/p/databases/(default)/documents/a/b",
  data: { value: 1 },
};
const finalized = {
  context: {
    eventId: "9",
    timestamp: "now",
    eventType: "google.storage.object.finalize",
    resource: {
      service: "storage.googleapis.com",
      name: "projects/_/buckets/b/objects/o.txt",
      type: "storage#object",
    },
  },
  data: { kind: "storage#object", name: "o.txt" },
};
const json = { "content-type": "application/json" };
const cloudEvent = (type: string, source: string, more: Record<string, string> = {}) => ({
  ...json,
  "ce-specversion": "1.0",
  "ce-id": "5",
  "ce-time": "now",
  "ce-type": type,
  "ce-source": source,
  ...more,
});

interface Row {
  name: string;
  headers?: Record<string, string>;
  body: unknown;
  path?: string;
  got: Record<string, unknown> | undefined;
}

const toBackground: Row[] = [
  {
    name: "what Pub/Sub pushes",
    body: push,
    path: `/${topic}`,
    got: {
      data: published.data,
      id: "7",
      type: "google.pubsub.topic.publish",
      resource: published.context.resource,
    },
  },
  {
    name: "what Pub/Sub pushes, without a topic in the path",
    body: push,
    got: { id: "7", resource: { service: "pubsub.googleapis.com", name: "", type: pubsub } },
  },
  { name: "a background event", body: published, got: { data: published.data, id: "7" } },
  {
    name: "a background event of the older form",
    body: written,
    got: {
      data: written.data,
      id: "8",
      time: "now",
      type: written.eventType,
      resource: written.resource,
    },
  },
  {
    name: "a CloudEvent of Pub/Sub",
    headers: cloudEvent(
      "google.cloud.pubsub.topic.v1.messagePublished",
      `//pubsub.googleapis.com/${topic}`,
    ),
    body: { message: { ...message, attributes: { a: "b" } }, subscription: "s" },
    got: {
      data: { attributes: { a: "b" }, data: "aGk=" },
      id: "5",
      time: "now",
      type: "google.pubsub.topic.publish",
      resource: { service: "pubsub.googleapis.com", name: topic, type: pubsub },
    },
  },
  {
    name: "a CloudEvent of Storage",
    headers: cloudEvent(
      "google.cloud.storage.object.v1.finalized",
      "//storage.googleapis.com/projects/_/buckets/b",
      { "ce-subject": "objects/o.txt" },
    ),
    body: finalized.data,
    got: {
      data: finalized.data,
      type: "google.storage.object.finalize",
      resource: finalized.context.resource,
    },
  },
  {
    name: "a CloudEvent of Firebase's users",
    headers: cloudEvent(
      "google.firebase.auth.user.v1.created",
      "//firebaseauth.googleapis.com/projects/p",
    ),
    body: { uid: "u", metadata: { createTime: "a", lastSignInTime: "b" } },
    got: {
      data: { uid: "u", metadata: { createdAt: "a", lastSignedInAt: "b" } },
      resource: "projects/p",
    },
  },
  {
    name: "a CloudEvent of Firebase's database",
    headers: cloudEvent(
      "google.firebase.database.ref.v1.written",
      "//firebasedatabase.googleapis.com/projects/_/locations/us-central1/instances/i",
      { "ce-subject": "refs/a" },
    ),
    body: { delta: 1 },
    got: {
      type: "providers/google.firebase.database/eventTypes/ref.write",
      resource: "projects/_/instances/i/refs/a",
    },
  },
  { name: "an empty object", body: {}, got: undefined },
];

const toCloudEvent: Row[] = [
  {
    name: "what Pub/Sub pushes",
    body: push,
    path: `/${topic}`,
    got: {
      id: "7",
      type: "google.cloud.pubsub.topic.v1.messagePublished",
      source: `//pubsub.googleapis.com/${topic}`,
      datacontenttype: "application/json",
      data: {
        message: {
          ...published.data,
          messageId: "7",
          publishTime: "2026-01-02T03:04:05Z",
        },
      },
    },
  },
  {
    name: "a background event of Storage",
    body: finalized,
    got: {
      id: "9",
      time: "now",
      type: "google.cloud.storage.object.v1.finalized",
      source: "//storage.googleapis.com/projects/_/buckets/b",
      subject: "objects/o.txt",
      data: finalized.data,
    },
  },
  {
    name: "a background event of the older form",
    body: written,
    got: {
      type: "google.cloud.firestore.document.v1.written",
      source: "//firestore.googleapis.com/projects/p/databases/(default)",
      subject: "documents/a/b",
      data: { value: 1 },
    },
  },
  {
    name: "a background event of Firebase's database",
    body: {
      eventType: "providers/google.firebase.database/eventTypes/ref.write",
      resource: "projects/_/instances/i/refs/a",
      domain: "europe-west1.firebasedatabase.app",
      data: {},
    },
    got: {
      source: "//firebasedatabase.googleapis.com/projects/_/locations/europe-west1/instances/i",
      subject: "refs/a",
    },
  },
  {
    name: "a background event of no known type",
    body: { eventType: "other", data: {} },
    got: undefined,
  },
  {
    name: "a resource that is not one of the service",
    body: { ...written, resource: "x" },
    got: undefined,
  },
  { name: "an empty object", body: {}, got: undefined },
];

describe.skipIf(missingPython).each([
  ["event", { FUNCTION_TARGET: "background", FUNCTION_SIGNATURE_TYPE: "event" }, toBackground],
  ["cloudevent", { FUNCTION_TARGET: "on_event" }, toCloudEvent],
] as const)("a function of the signature %s", (_, env, rows) => {
  let runtime: PythonRuntime;
  beforeAll(async () => {
    runtime = await PythonRuntime.start({ "main.py": functions }, env);
  });
  afterAll(() => runtime.stop());

  test.each(rows)("gets $name", async ({ headers = json, body, path = "/", got }) => {
    const before = runtime.output.length;
    const answer = await runtime.call(path, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    expect(answer.status, runtime.output).toBe(got === undefined ? 400 : 200);
    if (got === undefined) return;
    const printed = await vi.waitUntil(() => /^got (.*)$/m.exec(runtime.output.slice(before)));
    expect(JSON.parse(printed[1] ?? "")).toMatchObject(got);
  });
});
