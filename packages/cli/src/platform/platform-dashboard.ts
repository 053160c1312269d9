/** The dashboard of this platform: as whom a link logs in, and where it finds everything else. */
import { type Dashboard, metricsAt } from "@spry/dashboard";
import { httpsTransport } from "@spry/kube";
import { subjects } from "./certificate-subjects.ts";
import { defaultDashboardPort, openDashboard } from "./dashboard.ts";
import { type Foundation, host } from "./foundation.ts";
import { type GatewayProcess } from "./gateway-process.ts";
import { type PlatformOptions } from "./platform.ts";
import { type OwnPorts } from "./own-ports.ts";
import { occupying } from "./port-in-use.ts";
import { type TokenFile } from "./token-files.ts";

/** As the kubeconfig's certificate says, and what authentication adds. */
const ownerGroups = [...subjects.admin.organisations, "system:authenticated"];

export function openPlatformDashboard(
  options: PlatformOptions,
  parts: {
    foundation: Foundation;
    gateway: GatewayProcess;
    metricsToken: TokenFile;
    ports: OwnPorts;
  },
): Promise<Dashboard> {
  const { foundation, gateway, metricsToken, ports } = parts;
  const { api, apiServer, certificates } = foundation;
  const events = `https://${host}:${gateway.eventsPort}`;
  const wanted = options.dashboardPort;
  return occupying(
    "dashboard",
    wanted ?? defaultDashboardPort,
    "--dashboard-port",
    (port) =>
      openDashboard({
        dataDir: options.dataDir.root,
        host,
        port,
        orFree: wanted === undefined,
        names: options.dashboardHost ?? [],
        apiServer: { server: apiServer, certificateAuthority: certificates.ca },
        asOwner: api.transport({ name: subjects.admin.commonName, groups: ownerGroups }),
        events: {
          server: events,
          asOwner: httpsTransport({
            server: events,
            namespace: "default",
            certificateAuthority: certificates.ca,
            clientCertificate: certificates.admin.cert,
            clientKey: certificates.admin.key,
          }),
        },
        gateway: new URL(`http://localhost:${gateway.port}`),
        exposedPort: () => gateway.httpsPort,
        registryUsage: () => foundation.registry.usage(),
        // The port changes when the gateway is started again.
        gatewayMetrics: async () => [
          await metricsAt(`http://${host}:${gateway.adminPort}/metrics`, metricsToken.token),
        ],
        log: options.log.child({ room: "dashboard" }),
      }),
    ports,
  );
}
