import { type Message, type NewMessage } from "@spry/queue";
import { type CloudEvent } from "./cloud-event.ts";
import { fullName } from "./names.ts";

/** Of events; calls have other subjects in the same queue. */
const subjectPrefix = "event:";

export const subjectOf = (name: string): string => `${subjectPrefix}${name}`;
export const isEvent = ({ subject }: Message): boolean => subject.startsWith(subjectPrefix);

/** Source and id together identify an event (CloudEvents, section 3.1.1). */
export function toMessage({ attributes, data }: CloudEvent): NewMessage {
  const { source = "", type = "", id = "" } = attributes;
  return {
    subject: subjectOf(fullName(source, type)),
    key: `${source}\n${id}`,
    attributes,
    body: data,
  };
}

export const eventOf = ({ attributes, body }: Message): CloudEvent => ({ attributes, data: body });
