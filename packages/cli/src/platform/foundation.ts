/** What every other part of the platform rests on: the API server and the registry, both listening. */
import { existsSync } from "node:fs";
import path from "node:path";
import {
  type ApiServer,
  type ApiServerOptions,
  createApiServer,
  DamagedKeyError,
  DamagedStoreError,
  storeQuotaOf,
  StoreTooLargeError,
} from "@spry/apiserver";
import { KubeClient, type Transport } from "@spry/kube";
import { type MachineNode } from "@spry/machine";
import { spryCommand } from "../shown-command.ts";
import { UserError } from "../user-error.ts";
import { type Certificates, ensureCertificates } from "./certificates.ts";
import { type DataDir } from "./data-dir.ts";
import { gatewayKubeconfig } from "./kubeconfig.ts";
import { type Identity, registryIdentity } from "./identities.ts";
import { type OwnPorts } from "./own-ports.ts";
import { type PlatformOptions } from "./platform.ts";
import { listenAgain, portBefore } from "./port-before.ts";
import { occupying } from "./port-in-use.ts";
import { type EmbeddedRegistry, openRegistry } from "./registry.ts";
import { type Teardown } from "./teardown.ts";

/** All of the platform listens at loopback only. */
export const host = "127.0.0.1";

/** The host in image names: it stays the same when the registry's port changes. */
export const pullAddress = "registry.spry.localhost";

export interface Foundation {
  certificates: Certificates;
  api: ApiServer;
  /** The API server's URL and port. */
  apiServer: string;
  apiPort: number;
  /** With all rights. */
  client: KubeClient;
  /** With the rights of one part of the platform. */
  clientOf: (identity: Identity) => KubeClient;
  registry: EmbeddedRegistry;
  registryUrl: string;
  registryPort: number;
  /** From now on the API server asks this node for logs of its Pods. */
  addNode: (name: string, node: MachineNode) => void;
}

/** Opens the store and the registry of the data directory; `teardown` closes them. */
export async function openFoundation(
  options: PlatformOptions,
  teardown: Teardown,
  ports: OwnPorts,
): Promise<Foundation> {
  const { dataDir, log } = options;
  // The API server asks nodes for logs, and starts before the first of them.
  const nodes = new Map<string, MachineNode>();
  const kubelet = (name: string): Transport | undefined => nodes.get(name)?.kubelet;

  const issued = ensureCertificates(dataDir.pki);
  const [certificates, api] = await Promise.all([
    issued,
    openApiServer(dataDir, {
      log: log.child({ room: "apiserver" }),
      kubelet,
      podSecurity: options.podSecurity,
      storeQuota: options.storeQuota === undefined ? undefined : storeQuotaOf(options.storeQuota),
      rootCa: issued.then(({ ca }) => ca),
      frontProxy: issued.then(({ frontProxy }) => frontProxy),
    }),
  ]);
  teardown.add(() => api.close());
  const client = new KubeClient(api.transport(), { fieldManager: "spry" });
  const clientOf = ({ name, groups }: Identity) =>
    new KubeClient(api.transport({ name, groups }), { fieldManager: "spry" });
  const registry = await openRegistry(dataDir, {
    client: clientOf(registryIdentity),
    administrator: client,
    quotaBytes: options.registryQuota,
    log: log.child({ room: "registry" }),
  });
  teardown.add(() => registry.close());

  const listenForApi = (port: number) =>
    api.listen({ host, port, ...certificates.apiServer, clientCa: certificates.ca });
  const before = portBefore(gatewayKubeconfig(dataDir));
  const [apiListener, registryListener] = await Promise.all([
    occupying(
      "API server",
      options.apiPort,
      "--api-port",
      (port) => (port === 0 ? listenAgain(before, listenForApi, ports) : listenForApi(port)),
      ports,
    ),
    occupying(
      "registry",
      options.registryPort,
      "--registry-port",
      (port) => registry.listen({ host, port }),
      ports,
    ),
  ]);
  teardown.add(() => apiListener.close());
  teardown.add(() => registryListener.close());

  return {
    certificates,
    api,
    apiServer: `https://${host}:${apiListener.port}`,
    apiPort: apiListener.port,
    client,
    clientOf,
    registry,
    registryUrl: `http://${host}:${registryListener.port}`,
    registryPort: registryListener.port,
    addNode: (name, node) => nodes.set(name, node),
  };
}

/**
 * A store that is damaged or missing is for the operator to deal with: an empty one in its place would delete all
 * objects.
 */
async function openApiServer(
  dataDir: DataDir,
  options: Omit<ApiServerOptions, "dataDir">,
): Promise<ApiServer> {
  const wayOut = `put a backup in its place with \`${spryCommand(`restore --force --data-dir ${dataDir.root} FILE`)}\`, or start with another directory`;
  const isLost = existsSync(dataDir.kubeconfig) && !existsSync(path.join(dataDir.api, "state.db"));
  if (isLost) throw new UserError(`the store ${dataDir.api}/state.db is missing`, wayOut);
  try {
    return await createApiServer({ dataDir: dataDir.api, ...options });
  } catch (error) {
    if (error instanceof DamagedStoreError) throw new UserError(error.message, wayOut);
    if (error instanceof StoreTooLargeError) {
      const quota = `${Math.ceil(error.bytes / 2 ** 20)}Mi`;
      throw new UserError(
        error.message,
        `start with --store-quota ${quota}, for which Node.js gets more memory, and delete what is too much`,
      );
    }
    if (error instanceof DamagedKeyError)
      throw new UserError(
        error.message,
        "restore it from a backup, or remove it: all tokens of ServiceAccounts are made again",
      );
    throw error;
  }
}
