import { afterAll, beforeAll, describe } from "vitest";
import { natsProgram, whyNoNats } from "../../../tools/nats-server/binary.ts";
import { type NatsServer, startNatsServers } from "../../../tools/nats-server/server.ts";
import { openJetStreamQueue, type Queue, type QueueLimits } from "./index.ts";
import { conformance } from "./testing/conformance.ts";

const why = whyNoNats();

describe.skipIf(why)(why ?? natsProgram(), () => {
  let server: NatsServer | undefined;
  let count = 0;
  const names = new WeakMap<Queue, string>();

  beforeAll(async () => {
    [server] = await startNatsServers(1);
  });
  afterAll(() => server?.kill());

  const open = async (limits: Partial<QueueLimits> = {}, name = `q${++count}`): Promise<Queue> => {
    const queue = await openJetStreamQueue({
      servers: [server?.url ?? ""],
      name,
      limits: { maxBytes: 64 * 1024 ** 2, maxDeadBytes: 16 * 1024 ** 2, ...limits },
      ackWaitMs: 1_000,
    });
    names.set(queue, name);
    return queue;
  };

  conformance({
    open,
    async reopen(queue) {
      const name = names.get(queue);
      (queue as Queue & { abandon(): void }).abandon();
      return open({}, name);
    },
  });
});
