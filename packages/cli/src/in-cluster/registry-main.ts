/**
 * Program: the registry in a cluster. Everyone must log in; what nothing in the cluster refers to any more is removed,
 * as on one machine. Its ServiceAccount may list what names images, get Jobs and namespaces, and nothing else.
 */
import { imagesInUse, imageUses, startRegistryCleaning } from "@spry/controller";
import { createLogins, createRegistry } from "@spry/image";
import { httpsTransport, KubeClient, loadKubeconfig } from "@spry/kube";
import { createLogger } from "../logger.ts";
import { boundRegistry } from "../registry-connections.ts";
import { tenantsOf } from "../registry-tenants.ts";
import { startStatusServer } from "../status-server.ts";
import { installedImages } from "./installed-images.ts";
import { runProgram, untilAborted } from "./program.ts";
import { startUsageServer } from "./usage-server.ts";
import { readUsageToken } from "./usage-token.ts";
import { registryEnvironment } from "./registry-environment.ts";

const log = createLogger({ name: "registry" });
const ports = { registry: 5000, metrics: 5001, usage: 5002 };
const day = 24 * 3_600_000;

void runProgram(log, async (signal) => {
  const { dir, key, quotaBytes, images, cleaning } = registryEnvironment(process.env);
  const client = new KubeClient(httpsTransport(loadKubeconfig()), {
    fieldManager: "spry-registry",
  });
  let requestCleaning = () => {};
  const registry = createRegistry({
    dir,
    logins: createLogins(key),
    tenants: tenantsOf(client),
    ...(quotaBytes === undefined ? {} : { quotaBytes }),
    onPressure: () => requestCleaning(),
    retention: {
      previousImages: cleaning.previousImages,
      cacheMaxAgeMs: cleaning.cacheMaxAgeDays * day,
      graceMs: cleaning.graceSeconds * 1000,
    },
    log,
  });
  const repositories = await registry.moveOver(() => imageUses(client));
  if (repositories > 0)
    log.info({ repositories }, "moved images to repositories named after their namespaces");
  const server = await registry.listen({
    host: "0.0.0.0",
    port: ports.registry,
    bound: boundRegistry,
  });
  const metrics = { render: () => registry.metrics() };
  const status = await startStatusServer({ port: ports.metrics, isReady: () => true, metrics });
  const config = installedImages(images);
  const usage = await startUsageServer({
    port: ports.usage,
    token: () => readUsageToken(),
    usage: async () => registry.usage(await imagesInUse(client, config)),
    log,
  });
  log.info({ port: server.port }, "the registry listens");

  const keeping = startRegistryCleaning({
    client,
    config,
    clean: (inUse) => registry.clean(inUse),
    intervalMs: cleaning.intervalSeconds * 1000,
    log,
    signal,
  });
  requestCleaning = () => keeping.request();
  await untilAborted(signal);
  await server.close();
  await status.close();
  await usage.close();
  await keeping.ended;
  await registry.close();
});
