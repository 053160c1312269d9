/**
 * Program: events in a cluster. Every replica accepts them; one leads, which delivers them, makes the calls that may wait,
 * and starts what schedules say.
 */
import { startEventing } from "@spry/eventing";
import { httpsTransport, KubeClient, loadKubeconfig, runAsLeader } from "@spry/kube";
import { openJetStreamQueue } from "@spry/queue";
import { listening } from "../listening.ts";
import { createLogger } from "../logger.ts";
import { startStatusServer } from "../status-server.ts";
import { UserError } from "../user-error.ts";
import { textIn } from "./environment.ts";
import { leaveMs, runProgram, untilAborted } from "./program.ts";

const leaseName = "serverless-eventing";
const ports = { publisher: 8080, status: 8090 };

const log = createLogger({ name: "eventing" });

void runProgram(log, async (signal) => {
  const namespace = textIn(process.env, "POD_NAMESPACE");
  const identity = textIn(process.env, "POD_NAME");
  const servers = textIn(process.env, "NATS_SERVERS").split(",").filter(Boolean);
  const token = process.env["NATS_TOKEN"];
  const replicas = Number(textIn(process.env, "NATS_REPLICAS"));
  if (!Number.isInteger(replicas) || replicas < 1)
    throw new UserError(`NATS_REPLICAS ${replicas}: not a whole number from 1`);
  const client = new KubeClient(httpsTransport(loadKubeconfig()), {
    fieldManager: "spry-eventing",
  });
  const openQueue = () =>
    openJetStreamQueue({
      servers,
      replicas,
      log,
      ...(token === undefined ? {} : { connection: { token } }),
    });
  const eventing = startEventing({
    client,
    openQueue,
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
  log.info({ port: publisher.port, servers: servers.length }, "the publisher listens");
  const ended = await Promise.race([untilAborted(signal), eventing.ended]);
  if (ended instanceof Error) throw ended;
  // Until it is no longer named as an endpoint; deliveries under way end meanwhile.
  await new Promise((resolve) => setTimeout(resolve, leaveMs));
  await publisher.close();
  await eventing.close();
  await status.close();
});
