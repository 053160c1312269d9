/** The JetStream driver compared with its client library alone, in turns on the same server: publishing, and taking with acknowledgement. */
import { randomBytes } from "node:crypto";
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { openJetStreamQueue, type Queue } from "@spry/queue";
import { whyNoNats } from "../tools/nats-server/binary.ts";
import { startNatsServers } from "../tools/nats-server/server.ts";

const count = 10_000;
const clients = 64;
const rounds = 3;
const body = Buffer.alloc(256);

/** The driver's rates, in percent of the client's own. Without a server it prints the reason and returns undefined. */
export async function jetstreamRatios(): Promise<
  { publishing: number; taking: number } | undefined
> {
  const why = whyNoNats();
  if (why !== undefined) {
    console.log(`JetStream left out: ${why}`);
    return undefined;
  }
  const [server] = await startNatsServers(1);
  if (!server) return undefined;
  const queue = await openJetStreamQueue({ servers: [server.url] });
  const connection = await connect({ servers: server.url });
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: "bare", subjects: ["bare.*"], max_bytes: 1024 ** 3 });
  const client = jetstream(connection);
  const ours = { publishing: 0, taking: 0 };
  const bare = { publishing: 0, taking: 0 };
  try {
    for (let round = 0; round < rounds; round++) {
      bare.publishing += await seconds(() =>
        client.publish("bare.a", body, { msgID: randomBytes(8).toString("hex") }),
      );
      const durable = `c${round}`;
      await manager.consumers.add("bare", {
        durable_name: durable,
        ack_policy: AckPolicy.Explicit,
      });
      bare.taking += await takenBare(client, durable, (round + 1) * count);
      const consumer = await queue.consumer(durable, { subjects: ["a"], from: "start" });
      ours.publishing += await seconds(() =>
        queue.append([{ subject: "a", key: randomBytes(8).toString("hex"), attributes: {}, body }]),
      );
      ours.taking += await taken(consumer, (round + 1) * count);
    }
  } finally {
    await connection.close();
    await queue.close();
    await server.kill();
  }
  return {
    publishing: (bare.publishing / ours.publishing) * 100,
    taking: (bare.taking / ours.taking) * 100,
  };
}

async function seconds(publish: () => Promise<unknown>): Promise<number> {
  let left = count;
  const begin = performance.now();
  const one = async () => {
    while (left-- > 0) await publish();
  };
  await Promise.all(Array.from({ length: clients }, one));
  return (performance.now() - begin) / 1_000;
}

async function takenBare(client: ReturnType<typeof jetstream>, durable: string, all: number) {
  const consumer = await client.consumers.get("bare", durable);
  const begin = performance.now();
  let left = all;
  for await (const message of await consumer.consume({ max_messages: clients })) {
    message.ack();
    if (--left === 0) break;
  }
  return (performance.now() - begin) / 1_000;
}

async function taken(consumer: Awaited<ReturnType<Queue["consumer"]>>, all: number) {
  const begin = performance.now();
  const signal = new AbortController().signal;
  for (let left = all; left > 0;) {
    for (const delivery of await consumer.next(clients, signal)) {
      delivery.ack();
      left--;
    }
  }
  return (performance.now() - begin) / 1_000;
}
