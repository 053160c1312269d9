import { messageOf } from "@spry/kube";
import { type Queue, QueueUnavailableError } from "@spry/queue";
import { type CloudEvent, NotAnEventError } from "../events/cloud-event.ts";
import { toMessage } from "../events/message.ts";
import { fullName, hasEmptySegment } from "../events/names.ts";
import { type EventTraces } from "../tracing/event-traces.ts";

/**
 * Resolves when the events are durable.
 * @throws NotAnEventError, QueueFullError, QueueUnavailableError
 */
export async function accept(
  queue: Queue | undefined,
  events: readonly CloudEvent[],
  traces?: EventTraces,
): Promise<void> {
  for (const { attributes } of events) {
    const { source = "", type = "" } = attributes;
    const name = fullName(source, type);
    if (hasEmptySegment(name))
      throw new NotAnEventError(`event type cannot have empty segments after cleaning: ${name}`);
  }
  if (!queue) throw new QueueUnavailableError("events cannot be accepted at present: retry later");
  if (events.length === 0) return;
  const traced = traces?.publishing(events) ?? { events, end: () => {} };
  try {
    await queue.append(traced.events.map(toMessage));
    traced.end();
  } catch (error) {
    traced.end(messageOf(error));
    throw error;
  }
}
