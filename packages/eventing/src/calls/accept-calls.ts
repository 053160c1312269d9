import { type CallAcceptor } from "@spry/gateway";
import {
  type Clock,
  type KubeClient,
  type Logger,
  messageOf,
  type ObjectKey,
  silentLogger,
  sleep,
  systemClock,
} from "@spry/kube";
import { type Queue } from "@spry/queue";
import { createCallAcceptor } from "./acceptor.ts";
import { consumerOfCalls } from "./call.ts";
import { clusterTrustMs, LastKnownNamespaces, NamespaceClaims } from "./namespace-claims.ts";
import { CallSubmitter } from "./submit.ts";

const retryMs = 2_000;

export interface CallAcceptance {
  /** For a gateway. */
  readonly calls: CallAcceptor;
  close(): Promise<void>;
}

/** Accepts calls that another process makes: for gateways of a cluster. */
export function acceptCalls(options: {
  client: KubeClient;
  openQueue: () => Promise<Queue>;
  clock?: Clock;
  log?: Logger;
}): CallAcceptance {
  const { client, openQueue, clock = systemClock, log = silentLogger } = options;
  const stop = new AbortController();
  const { signal } = stop;
  let queue: Queue | undefined;
  const opened = (async () => {
    while (!stop.signal.aborted && !queue) {
      try {
        queue = await openQueue();
      } catch (error) {
        log.error({ error: messageOf(error) }, "opening the queue of calls, trying again");
        await sleep(clock, retryMs, stop.signal);
      }
    }
  })();
  const known = new Set<ObjectKey>();
  const consumers = {
    // What takes calls finds the consumer by itself; it has to be there before the first of them.
    async ensure(key: ObjectKey) {
      if (known.has(key)) return;
      await queue?.consumer(...consumerOfCalls(key));
      known.add(key);
    },
  };
  return {
    calls: createCallAcceptor({
      queue: () => queue,
      submitter: new CallSubmitter(clock),
      claims: new NamespaceClaims(
        client,
        clock,
        new LastKnownNamespaces({ client, clock, trustMs: clusterTrustMs, log, signal }),
      ),
      runner: () => consumers,
      clock,
      log,
    }),
    async close() {
      stop.abort();
      await opened;
      await queue?.close();
    },
  };
}
