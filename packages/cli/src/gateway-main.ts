/** Program: the gateway, in a process of its own. See platform/gateway-process.ts. */
import { closeSync, writeSync } from "node:fs";
import { createGateway } from "@spry/gateway";
import { httpsTransport, KubeClient, loadKubeconfig, messageOf } from "@spry/kube";
import { eventingVariable, startGatewayEventing } from "./gateway-eventing.ts";
import { relayLocalhost } from "./localhost-relay.ts";
import { createLogger } from "./logger.ts";
import { readAllowedLoopback } from "./platform/allowed-loopback.ts";
import { systemNamespace } from "./platform/system-objects.ts";
import { countsTokenVariable, metricsTokenVariable, readToken } from "./platform/token-files.ts";

/**
 * `httpsPort`: with a question mark behind it, another one will do if it is taken; `own`: where Services that are served on demand have
 * their addresses or ports (ADR 0018).
 */
const [kubeconfig, host = "127.0.0.1", port = "0", httpsPort = "", adminPort = "0", ...own] =
  process.argv.slice(2);
const log = createLogger({ name: "gateway" });

function report(line: string): void {
  try {
    writeSync(3, `${line}\n`);
    closeSync(3);
  } catch (error) {
    // Without that descriptor it was started by hand. A platform that has ended meanwhile has not recorded which
    // process it started: nothing would ever end this process.
    if ((error as NodeJS.ErrnoException).code === "EPIPE") process.exit(1);
  }
}

try {
  const config = loadKubeconfig(kubeconfig);
  const client = new KubeClient(httpsTransport(config));
  const tokenIn = (variable: string) => () => {
    const file = process.env[variable];
    return file ? readToken(file) : undefined;
  };
  const exposure = {
    namespace: systemNamespace,
    ownCertificates: true,
    allowedLoopback: readAllowedLoopback(),
  };
  const eventingSettings = process.env[eventingVariable];
  const eventing = eventingSettings
    ? await startGatewayEventing(eventingSettings, client, log)
    : undefined;
  const gateway = createGateway({
    client,
    log,
    inside: { own },
    countsToken: tokenIn(countsTokenVariable),
    metricsToken: tokenIn(metricsTokenVariable),
    exposure,
    ...(eventing && { calls: eventing.calls, moreMetrics: eventing.metrics }),
  });
  const [https = "", orFree] = httpsPort.split(/(?=\?)/);
  const server = await gateway.listen({
    host,
    port: Number(port),
    ...(https === "" ? {} : { https: { port: Number(https), orFree: orFree !== undefined } }),
  });
  const admin = await gateway.listenAdmin({ host, port: Number(adminPort) });
  const stopRelay = await relayLocalhost([server.port, server.httpsPort ?? 0], log);
  await gateway.ready;
  const ports = [
    server.port,
    admin.port,
    server.httpsPort ?? 0,
    eventing?.publisherPort ?? 0,
    eventing?.adminPort ?? 0,
  ];
  report(`ready ${ports.join(" ")}`);
  let stopping = false;
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.on(name, () => {
      if (stopping) process.exit(1);
      stopping = true;
      stopRelay();
      void Promise.all([server.close(), eventing?.close()]).then(() => process.exit(0));
    });
  }
} catch (error) {
  report(`error ${messageOf(error)}`);
  log.error({ error: messageOf(error) }, "starting the gateway");
  process.exit(1);
}
