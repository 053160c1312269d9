/** Program: the gateway in a cluster, for what the way from Service to Pod cannot do. */
import { acceptCalls } from "@spry/eventing";
import { createGateway } from "@spry/gateway";
import { httpsTransport, KubeClient, loadKubeconfig } from "@spry/kube";
import { gatewayName } from "../install/names.ts";
import { createLogger } from "../logger.ts";
import { readCountsToken } from "./counts-token.ts";
import { textIn } from "./environment.ts";
import { natsQueue } from "./nats-queue.ts";
import { leaveMs, runProgram, untilAborted } from "./program.ts";

/** Together with `leaveMs`, and as long again for EndpointSlices, less than the Pod's grace period of 30 s. */
const drainMs = 18_000;

const ports = { front: 8080, admin: 8090 };

const log = createLogger({ name: "gateway" });

void runProgram(log, async (signal) => {
  const client = new KubeClient(httpsTransport(loadKubeconfig()), { fieldManager: "spry-gateway" });
  const own = process.env["POD_IP"];
  const namespace = textIn(process.env, "POD_NAMESPACE");
  const countsToken = () => readCountsToken(client, namespace);
  // Of several gateways, one keeps the hard limits of Revisions (ADR 0030).
  const admission = own
    ? { namespace, front: `${own}:${ports.front}`, admin: `${own}:${ports.admin}` }
    : undefined;
  const inside = own ? { own: [own], bind: "0.0.0.0" } : undefined;
  // The port that clients see is the Service's.
  const exposure = {
    namespace,
    ownCertificates: false,
    // Only APIRules open anything to clients outside. Functions whose callers need tokens never have hosts of their own.
    functionHosts: process.env["SPRY_SERVICE_TYPE"] !== "LoadBalancer",
    publicHttpsPort: 443,
  };
  const openQueue = natsQueue(process.env, log);
  const acceptance = openQueue && acceptCalls({ client, openQueue, log });
  const gateway = createGateway({
    client,
    ...(acceptance && { calls: acceptance.calls }),
    ownNames: ["", ".svc", ".svc.cluster.local"].map(
      (suffix) => `${gatewayName}.${namespace}${suffix}`,
    ),
    log,
    leaveMs,
    drainMs,
    countsToken,
    exposure,
    ...(inside && { inside }),
    ...(admission && { admission }),
  });
  const admin = await gateway.listenAdmin({ host: "0.0.0.0", port: ports.admin });
  const server = await gateway.listen({
    host: "0.0.0.0",
    port: ports.front,
    https: { port: 8443 },
  });
  await gateway.ready;
  log.info({ port: server.port, httpsPort: server.httpsPort }, "the gateway listens");
  await untilAborted(signal);
  await server.close();
  await admin.close();
  await acceptance?.close();
});
