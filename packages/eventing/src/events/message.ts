import { hash } from "node:crypto";
import { type Message, type NewMessage } from "@spry/queue";
import { type CloudEvent } from "./cloud-event.ts";
import { fullName } from "./names.ts";

/** Of events; calls have other subjects in the same queue. */
const subjectPrefix = "event:";

export const subjectOf = (name: string): string => `${subjectPrefix}${name}`;
export const isEvent = ({ subject }: Message): boolean => subject.startsWith(subjectPrefix);

/**
 * Source and id together identify an event (CloudEvents, section 3.1.1). But any client may use any source: so
 * that none can have another client's event dropped as a duplicate, the key also has a digest of everything else.
 */
export function toMessage({ attributes, data }: CloudEvent): NewMessage {
  const { source = "", type = "", id = "" } = attributes;
  return {
    subject: subjectOf(fullName(source, type)),
    key: `${source}\n${id}\n${digestOf(attributes, data)}`,
    attributes,
    body: data,
  };
}

/** Of 16 bytes. Another attempt to publish an event may be part of another trace. */
function digestOf(attributes: CloudEvent["attributes"], data: Uint8Array): string {
  const { traceparent: _parent, tracestate: _state, ...others } = attributes;
  const sorted = Object.entries(others).sort(([a], [b]) => (a < b ? -1 : 1));
  const head = Buffer.from(`${JSON.stringify(sorted)}\n`);
  return hash("sha256", Buffer.concat([head, data]), "buffer")
    .subarray(0, 16)
    .toString("base64url");
}

export const eventOf = ({ attributes, body }: Message): CloudEvent => ({ attributes, data: body });
