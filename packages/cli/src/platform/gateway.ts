/** The gateway of this platform: with which rights, ports and addresses its process runs. */
import { createHash } from "node:crypto";
import path from "node:path";
import { type Sandbox } from "@spry/machine";
import { version } from "../version.ts";
import { writeAtomically } from "./data-dir.ts";
import { type Foundation, host } from "./foundation.ts";
import { callerAddresses } from "./gateway-addressing.ts";
import { type GatewayProcess, startGatewayProcess } from "./gateway-process.ts";
import { gatewayKubeconfig, kubeconfigFor } from "./kubeconfig.ts";
import { type OwnPorts } from "./own-ports.ts";
import { type PlatformOptions } from "./platform.ts";
import { occupying } from "./port-in-use.ts";
import { type Teardown } from "./teardown.ts";
import { type TokenFile } from "./token-files.ts";

const defaultHttpsPort = 8443;
const defaultPublisherPort = 8082;

/** Starts the gateway's process, or adopts the one that runs; `teardown` ends it. */
export async function startGateway(
  options: PlatformOptions,
  parts: {
    foundation: Foundation;
    sandbox: Sandbox;
    counts: TokenFile;
    metricsToken: TokenFile;
    teardown: Teardown;
    ports: OwnPorts;
  },
): Promise<GatewayProcess> {
  const { dataDir, httpsPort, publisherPort, log } = options;
  const { sandbox, counts, metricsToken, teardown, ports } = parts;
  const { certificates, apiServer } = parts.foundation;
  const kubeconfig = gatewayKubeconfig(dataDir);
  const credentials = { server: apiServer, ca: certificates.ca };
  writeAtomically(
    kubeconfig,
    kubeconfigFor({ ...credentials, user: "gateway", client: certificates.gateway }),
    0o600,
  );
  const process = await occupying(
    "gateway",
    options.gatewayPort,
    "--gateway-port",
    (port) =>
      startGatewayProcess({
        dataDir: dataDir.root,
        logFile: path.join(dataDir.logs, "gateway.log"),
        kubeconfig,
        countsTokenFile: counts.file,
        metricsTokenFile: metricsToken.file,
        adminPort: options.gatewayMetricsPort,
        host,
        port,
        https: { port: httpsPort ?? defaultHttpsPort, orFree: httpsPort === undefined },
        eventing: {
          directory: path.join(dataDir.root, "events"),
          host,
          port: publisherPort ?? defaultPublisherPort,
          orFree: publisherPort === undefined,
          adminPort: 0,
          pki: dataDir.pki,
        },
        callerAddresses: callerAddresses(sandbox),
        allowedLoopback: options.allowedLoopback,
        fingerprint: [
          version,
          apiServer,
          hashOf(certificates.gateway.cert),
          hashOf(counts.token),
          hashOf(metricsToken.token),
          hashOf(certificates.events.cert),
          sandbox.hostAddress,
          hashOf(JSON.stringify(options.allowedLoopback)),
        ].join(" "),
        freePorts: (all) => ports.free(all),
        log,
      }),
    ports,
  );
  teardown.add(() => process.stop());
  return process;
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
