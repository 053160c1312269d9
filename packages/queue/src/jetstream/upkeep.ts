import { type ConsumerInfo } from "@nats-io/jetstream";
import { type Logger, messageOf } from "@spry/kube";
import { type QueueLimits } from "../queue.ts";
import { type JetStreamConsumer } from "./jetstream-consumer.ts";
import { type Link } from "./publishing.ts";
import { keptOf } from "./server-consumer.ts";

export interface UpkeepDeps {
  link: Link;
  limits: QueueLimits;
  consumers: ReadonlyMap<string, JetStreamConsumer>;
  log: Logger;
}

/** Of `maxBytes`: from here on, what all have done with is removed. */
const tight = 0.8;

/** Upkeep that the server does not do: it removes messages that all consumers have handled, and keeps dead letters fair. */
export async function upkeep(deps: UpkeepDeps): Promise<void> {
  try {
    await makeRoom(deps);
    await dropDeadLetters(deps);
  } catch (error) {
    deps.log.warn({ error: messageOf(error) }, "cleaning up the queue failed, trying again");
  }
}

async function makeRoom({ link, limits }: UpkeepDeps): Promise<void> {
  const { manager, names } = link;
  const { state } = await manager.streams.info(names.stream);
  if (state.bytes < tight * limits.maxBytes) return;
  let least = state.last_seq;
  for await (const info of manager.consumers.list(names.stream)) {
    const hasDone = info.num_pending === 0 && info.num_ack_pending === 0;
    if (!hasDone) least = Math.min(least, info.ack_floor.stream_seq);
  }
  for (const filter of [names.allMessages, names.allPrivate])
    await manager.streams.purge(names.stream, { filter, seq: least + 1 });
}

/** The consumer with the most loses its oldest, a tenth at a time. */
async function dropDeadLetters({ link, limits, consumers, log }: UpkeepDeps): Promise<void> {
  const { manager, names } = link;
  const { state } = await manager.streams.info(names.deadStream, {
    subjects_filter: names.deadSubjects,
  });
  if (state.bytes < limits.maxDeadBytes) return;
  const counts = Object.entries(state.subjects ?? {}).sort(([, a], [, b]) => b - a);
  const [subject, count] = counts[0] ?? [];
  if (subject === undefined || count === undefined) return;
  const keep = Math.floor(count * 0.9);
  const { purged } = await manager.streams.purge(names.deadStream, { filter: subject, keep });
  const owner = [...consumers.values()].find(({ name }) => names.dead(name) === subject);
  owner?.droppedSome(purged);
  log.warn({ consumer: owner?.name ?? subject, purged }, "dead letters were removed to make room");
}

/** Names of the queue's consumers, with what the server knows of them. */
export async function* listConsumers({ manager, names }: Link) {
  for await (const info of manager.consumers.list(names.stream) as AsyncIterable<ConsumerInfo>) {
    const kept = keptOf(info);
    if (kept) yield { info, kept };
  }
}
