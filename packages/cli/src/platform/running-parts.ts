/** The control loops of the platform: each runs until the platform stops. */
import {
  type Liveness,
  Remarks,
  startServerlessController,
  watchConfiguration,
} from "@spry/controller";
import { startSubscriptions } from "@spry/eventing";
import { startExposure } from "@spry/exposure";
import {
  type HostPort,
  measuredTransport,
  messageOf,
  type prometheusMetrics,
  systemClock,
} from "@spry/kube";
import {
  createServiceLookup,
  type MachineNode,
  type Sandbox,
  startControllers,
} from "@spry/machine";
import { keepServing } from "@spry/serving";
import { remarkEventingOwner } from "../eventing-remark.ts";
import { remarkDefinitionOwner } from "../exposure-remark.ts";
import { type LeveledLogger } from "../logger.ts";
import { remarkOwnership } from "../serving-remark.ts";
import { useConfiguration } from "../use-configuration.ts";
import { controllerConfig } from "./controller-config.ts";
import { type DataDir } from "./data-dir.ts";
import { type Foundation, host, pullAddress } from "./foundation.ts";
import { gatewayAddressing } from "./gateway-addressing.ts";
import { type GatewayProcess } from "./gateway-process.ts";
import { openHostAuthority } from "./host-authority.ts";
import { controllerIdentity } from "./identities.ts";
import { createDigestResolver } from "../image-digests.ts";
import { announcePublisher } from "./publisher-service.ts";
import { type SystemImages } from "./system-images.ts";
import { systemNamespace } from "./system-objects.ts";
import { type TokenFile } from "./token-files.ts";
import { type WebhookServer } from "./webhook-server.ts";

export interface RunningParts {
  foundation: Foundation;
  dataDir: DataDir;
  sandbox: Sandbox;
  node: MachineNode;
  gateway: GatewayProcess;
  counts: TokenFile;
  webhook: WebhookServer;
  images: SystemImages;
  metrics: ReturnType<typeof prometheusMetrics>;
  liveness: Liveness;
  /** Without: Functions are left to another controller. */
  withController: boolean;
  allowedLoopback: readonly HostPort[];
  log: LeveledLogger;
  /** Ends the Function Controller. */
  controllerSignal: AbortSignal;
  signal: AbortSignal;
}

/** Starts all of them. A promise is settled when its loop has ended: by the signal, or because it failed. */
export function startParts(parts: RunningParts): Promise<unknown>[] {
  const { foundation, sandbox, node, gateway, counts, webhook, liveness, metrics } = parts;
  const { log, signal } = parts;
  const { client, registry } = foundation;
  const controllerClient = foundation.clientOf(controllerIdentity);
  const config = controllerConfig(parts.images);
  const remarks = new Remarks();
  const logOf = (room: string) => log.child({ room });
  const functions = () =>
    startServerlessController({
      client: controllerClient.through((transport) => measuredTransport(transport, metrics)),
      config,
      metrics,
      liveness,
      internalRegistry: {
        logins: registry.logins,
        pullAddress,
        // A Pod with a network of its own finds the registry under the same name elsewhere.
        pushAddress: `${sandbox.hostAddress === host ? host : pullAddress}:${foundation.registryPort}`,
      },
      services: createServiceLookup(client),
      remarks,
      log: logOf("controller"),
      signal: parts.controllerSignal,
    });
  return [
    startControllers({
      client,
      rootCa: foundation.certificates.ca,
      log: logOf("machine"),
      signal,
    }),
    ...(parts.withController ? [functions()] : []),
    announcePublisher({
      client,
      endpoint: { address: sandbox.hostAddress, port: gateway.publisherPort },
      log: logOf("eventing"),
      signal,
    }),
    startExposure({
      client: controllerClient,
      namespace: systemNamespace,
      ownCertificates: true,
      authority: openHostAuthority(parts.dataDir.pki),
      onOwner: (owner) => remarkDefinitionOwner(remarks, owner),
      log: logOf("exposure"),
      signal,
    }),
    startSubscriptions({
      client: controllerClient,
      onOwner: (owner) => remarkEventingOwner(remarks, owner),
      log: logOf("eventing"),
      signal,
    }),
    keepServing({
      client: controllerClient,
      gateways: () => [`http://${host}:${gateway.adminPort}`],
      countsToken: () => counts.token,
      callers: gatewayAddressing(sandbox, gateway),
      domain: { name: "localhost", port: gateway.port },
      resolveDigest: createDigestResolver({
        client: controllerClient,
        mirrors: { [pullAddress]: { url: foundation.registryUrl } },
        allowedLoopback: parts.allowedLoopback,
        clock: systemClock,
      }),
      onOwnership(ownership) {
        remarkOwnership(remarks, ownership);
        webhook.configureServing().catch((error: unknown) => {
          log.error(
            { error: messageOf(error) },
            "configuring the webhooks of Knative Serving failed",
          );
        });
      },
      log: logOf("serving"),
      signal,
    }),
    watchConfiguration({
      client: controllerClient,
      config,
      onChange: (current) => {
        webhook.use(current.config);
        useConfiguration(current, { log, liveness });
      },
      log,
      signal,
    }),
    registry.keepClean({ config, signal }),
    node.run(signal),
  ];
}
