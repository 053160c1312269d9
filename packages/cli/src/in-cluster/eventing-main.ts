/**
 * Program: events in a cluster. Every replica accepts them; one leads, which delivers them, makes the asynchronous calls,
 * and starts what schedules say.
 */
import { startEventing } from "@spry/eventing";
import { httpsTransport, KubeClient, loadKubeconfig, runAsLeader } from "@spry/kube";
import { listening } from "../listening.ts";
import { createLogger } from "../logger.ts";
import { startStatusServer } from "../status-server.ts";
import { watchTraceEndpoint } from "../trace-endpoint.ts";
import { UserError } from "../user-error.ts";
import { administrationServer } from "./administration-server.ts";
import { textIn } from "./environment.ts";
import { formerNatsQueue, natsQueue } from "./nats-queue.ts";
import { leaveMs, runProgram, untilAborted } from "./program.ts";

const leaseName = "serverless-eventing";
const ports = { publisher: 8080, status: 8090 };

const log = createLogger({ name: "eventing" });

void runProgram(log, async (signal) => {
  const namespace = textIn(process.env, "POD_NAMESPACE");
  const identity = textIn(process.env, "POD_NAME");
  const openQueue = natsQueue(process.env, log);
  if (!openQueue) throw new UserError("NATS_SERVERS names no server", "the Deployment sets it");
  const former = formerNatsQueue(process.env, log);
  const client = new KubeClient(httpsTransport(loadKubeconfig()), {
    fieldManager: "spry-eventing",
  });
  const administration = administrationServer({ client, namespace, log });
  const eventing = startEventing({
    client,
    frontProxy: administration.frontProxy,
    traceEndpoint: watchTraceEndpoint(client, namespace, log, signal),
    openQueue,
    ...(former && { openFormer: former }),
    allowPrivate: false,
    lead: (work, until) =>
      runAsLeader(
        { client, namespace, name: leaseName, identity, log },
        (leading, fenced) => work(fenced, leading),
        until,
      ),
    log,
  });
  const publisher = await listening(eventing.publisher, { host: "0.0.0.0", port: ports.publisher });
  const status = await startStatusServer({
    port: ports.status,
    isReady: () => eventing.queue() !== undefined,
    metrics: { render: () => eventing.metrics.render() },
  });
  administration.start(eventing.admin);
  log.info({ port: publisher.port }, "the publisher listens");
  const ended = await Promise.race([untilAborted(signal), eventing.ended, administration.failed]);
  if (ended instanceof Error) throw ended;
  // Until it is no longer named as an endpoint; deliveries under way end meanwhile.
  await new Promise((resolve) => setTimeout(resolve, leaveMs));
  await publisher.close();
  await administration.close();
  await eventing.close();
  await status.close();
});
