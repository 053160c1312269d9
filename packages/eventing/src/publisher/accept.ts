import { type Queue, QueueUnavailableError } from "@spry/queue";
import { type CloudEvent, NotAnEventError } from "../events/cloud-event.ts";
import { toMessage } from "../events/message.ts";
import { fullName, hasEmptySegment } from "../events/names.ts";

/**
 * Resolves when the events are durable.
 * @throws NotAnEventError, QueueFullError, QueueUnavailableError
 */
export async function accept(
  queue: Queue | undefined,
  events: readonly CloudEvent[],
): Promise<void> {
  for (const { attributes } of events) {
    const { source = "", type = "" } = attributes;
    const name = fullName(source, type);
    if (hasEmptySegment(name))
      throw new NotAnEventError(`event type cannot have empty segments after cleaning: ${name}`);
  }
  if (!queue) throw new QueueUnavailableError("events cannot be accepted at present: retry later");
  if (events.length > 0) await queue.append(events.map(toMessage));
}
