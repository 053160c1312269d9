/** Events of Google's services, in the form of Cloud Functions' first generation and as CloudEvents: handlers of either get both. */
import { type CloudEvent } from "../cloud-event.ts";

type Fields = Record<string, unknown>;

/** `data` and `context` of the first generation. */
export interface BackgroundEvent {
  data: unknown;
  context: unknown;
}

interface Kind {
  service: string;
  /** What both names of a type begin with. */
  cloudEvent: string;
  background: string;
  /** The last part of the CloudEvent's type, and that of the other. */
  types: Record<string, string>;
  /** Where the resource ends and the subject begins. */
  subject?: string;
}

const pubSub: Kind = {
  service: "pubsub.googleapis.com",
  cloudEvent: "google.cloud.pubsub.topic.v1.",
  background: "google.pubsub.topic.",
  types: { messagePublished: "publish" },
};
const storage: Kind = {
  service: "storage.googleapis.com",
  cloudEvent: "google.cloud.storage.object.v1.",
  background: "google.storage.object.",
  types: {
    finalized: "finalize",
    deleted: "delete",
    archived: "archive",
    metadataUpdated: "metadataUpdate",
  },
  subject: "objects",
};
const firebaseAuth: Kind = {
  service: "firebaseauth.googleapis.com",
  cloudEvent: "google.firebase.auth.user.v1.",
  background: "providers/firebase.auth/eventTypes/user.",
  types: { created: "create", deleted: "delete" },
};
const firebaseDatabase: Kind = {
  service: "firebasedatabase.googleapis.com",
  cloudEvent: "google.firebase.database.ref.v1.",
  background: "providers/google.firebase.database/eventTypes/ref.",
  types: { created: "create", written: "write", updated: "update", deleted: "delete" },
  subject: "refs",
};
const kinds: Kind[] = [
  pubSub,
  storage,
  firebaseAuth,
  firebaseDatabase,
  {
    service: "firestore.googleapis.com",
    cloudEvent: "google.cloud.firestore.document.v1.",
    background: "providers/cloud.firestore/eventTypes/document.",
    types: { written: "write", created: "create", updated: "update", deleted: "delete" },
    subject: "documents",
  },
  {
    service: "firebase.googleapis.com",
    cloudEvent: "google.firebase.analytics.log.v1.",
    background: "providers/google.firebase.analytics/eventTypes/event.",
    types: { written: "log" },
    subject: "events",
  },
];

/** Types that have been renamed since. */
const older: Record<string, string> = {
  "providers/cloud.storage/eventTypes/object.change": "google.storage.object.finalize",
  "providers/cloud.pubsub/eventTypes/topic.publish": "google.pubsub.topic.publish",
};
const messageType = "type.googleapis.com/google.pubsub.v1.PubsubMessage";

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null;
const textOf = (value: unknown) => (typeof value === "string" ? value : "");

/** For `(data, context)`: of Google's own services as their first generation has it, of others with the attributes as context. */
export function backgroundOf({ attributes, data }: CloudEvent): BackgroundEvent {
  const { id, type, source, subject, time } = attributes;
  const kind = kinds.find((each) => textOf(type).startsWith(each.cloudEvent));
  const action = kind?.types[textOf(type).slice(kind.cloudEvent.length)];
  const [, service = "", name = ""] = /^\/\/([^/]+)\/(.+)$/.exec(textOf(source)) ?? [];
  if (!kind || action === undefined || name === "") return { data, context: attributes };
  const path = subject === undefined ? name : `${name}/${textOf(subject)}`;
  const context = { eventId: id, timestamp: time, eventType: kind.background + action };
  const fields = isFields(data) ? data : {};
  switch (kind) {
    case pubSub: {
      const {
        messageId: _id,
        publishTime: _time,
        ...message
      } = isFields(fields["message"]) ? fields["message"] : fields;
      return {
        data: message,
        context: { ...context, resource: { service, name, type: messageType } },
      };
    }
    case storage:
      return {
        data,
        context: { ...context, resource: { name: path, service, type: fields["kind"] } },
      };
    case firebaseAuth:
      return {
        data: withMetadata(data, "createTime", "createdAt"),
        context: { ...context, resource: name },
      };
    case firebaseDatabase:
      return { data, context: { ...context, resource: path.replace(/\/locations\/[^/]+/, "") } };
    default:
      return { data, context: { ...context, resource: path } };
  }
}

/** Of a body without a CloudEvent: what Pub/Sub pushes; `{ data, context }`, or the context's fields next to `data`. */
export function backgroundIn(body: unknown, path: string): BackgroundEvent {
  if (!isFields(body)) return { data: undefined, context: {} };
  const { message, subscription, context, data, ...others } = body;
  if (
    context === undefined &&
    subscription &&
    isFields(message) &&
    message["data"] &&
    message["messageId"]
  )
    return pushed(message, path);
  if (context !== undefined) return { data, context };
  const own = {
    ...(message !== undefined && { message }),
    ...(subscription !== undefined && { subscription }),
  };
  return { data, context: { ...own, ...others } };
}

function pushed(message: Fields, path: string): BackgroundEvent {
  const { data, attributes = {}, messageId, publishTime = new Date().toISOString() } = message;
  const name = /projects\/[^/?]+\/topics\/[^/?]+/.exec(path)?.[0] ?? null;
  return {
    data: { "@type": messageType, data, attributes },
    context: {
      eventId: messageId,
      timestamp: publishTime,
      eventType: "google.pubsub.topic.publish",
      resource: { service: pubSub.service, type: messageType, name },
    },
  };
}

/** As a CloudEvent; undefined for one of another service, or whose resource is not understood. */
export function cloudEventOf(
  { data, context }: BackgroundEvent,
  body: unknown,
): Fields | undefined {
  if (!isFields(context) || context["resource"] === undefined) return undefined;
  const type = older[textOf(context["eventType"])] ?? textOf(context["eventType"]);
  const kind = kinds.find((each) => type.startsWith(each.background));
  const action = Object.entries(kind?.types ?? {}).find(
    ([, each]) => kind && each === type.slice(kind.background.length),
  )?.[0];
  if (!kind || action === undefined) return undefined;
  const given = context["resource"];
  const name = isFields(given) ? textOf(given["name"]) : textOf(given);
  const service = (isFields(given) && textOf(given["service"])) || kind.service;
  const [, before = name, rest] = kind.subject
    ? (new RegExp(`^(.+?)/(${kind.subject}/.+)$`).exec(name) ?? [])
    : [];
  if (kind.subject && rest === undefined) return undefined;
  const uid = kind === firebaseAuth && isFields(data) ? data["uid"] : undefined;
  const subject = uid === undefined ? rest : `users/${textOf(uid)}`;
  return {
    specversion: "1.0",
    id: context["eventId"],
    time: context["timestamp"],
    type: kind.cloudEvent + action,
    source: `//${service}/${kind === firebaseDatabase ? located(before, body) : before}`,
    ...(subject !== undefined && { subject }),
    datacontenttype: "application/json",
    data: eventData(kind, data, context),
  };
}

function eventData(kind: Kind, data: unknown, context: Fields): unknown {
  if (kind === firebaseAuth) return withMetadata(data, "createdAt", "createTime");
  if (kind !== pubSub || !isFields(data)) return data;
  const { eventId, timestamp } = context;
  return { message: { messageId: eventId, publishTime: timestamp, ...data } };
}

/** The place of a database is part of its host. */
function located(name: string, body: unknown): string {
  const domain = isFields(body) ? textOf(body["domain"]) : "";
  const [, location = "us-central1"] = /^([\w-]+)\.firebasedatabase\.app$/.exec(domain) ?? [];
  return `projects/_/locations/${location}/${name.replace(/^projects\/[^/]+\//, "")}`;
}

/** The times of a user, whose names differ. */
function withMetadata(data: unknown, from: "createTime" | "createdAt", to: string): unknown {
  if (!isFields(data) || !isFields(data["metadata"])) return data;
  const [signedFrom, signedTo] =
    from === "createTime"
      ? ["lastSignInTime", "lastSignedInAt"]
      : ["lastSignedInAt", "lastSignInTime"];
  const renamed = Object.entries(data["metadata"]).map(([name, value]) => [
    name === from ? to : name === signedFrom ? signedTo : name,
    value,
  ]);
  return { ...data, metadata: Object.fromEntries(renamed) as Fields };
}
