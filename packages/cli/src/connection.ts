import { existsSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import {
  httpsTransport,
  KubeClient,
  type ClusterConfig,
  loadKubeconfig,
  messageOf,
  type Transport,
} from "@spry/kube";
import {
  eventsExtension,
  gatewayExtension,
  gatewayTlsExtension,
  publisherExtension,
  registryExtension,
} from "./platform/kubeconfig.ts";
import { assertLocal, localKubeconfig } from "./local-kubeconfig.ts";
import { explained } from "./cluster-requests.ts";
import { UserError } from "./user-error.ts";
import { setUsualNamespace } from "./shown-namespace.ts";
import { startCommand } from "./shown-command.ts";

export interface GlobalOptions {
  kubeconfig?: string;
  namespace?: string;
}

/** Which cluster a command talks to, and as what. */
export interface Connection {
  client: KubeClient;
  /** From the kubeconfig, for purposes other than requests. */
  cluster: ClusterConfig;
  namespace: string;
  /** Base URL of the gateway, where the cluster has one that this machine can reach. */
  gateway: URL | undefined;
  /** The same of its port for HTTPS, which hosts of APIRules have. */
  gatewayTls: URL | undefined;
  /** The same of the platform's own registry. */
  registry: URL | undefined;
  /** Where events are published. */
  publisher: URL | undefined;
  /** Requests to the administration of events; undefined where it cannot be reached. */
  events: Transport | undefined;
}

export async function connect(options: GlobalOptions): Promise<Connection> {
  const config = loadConfig(options);
  setUsualNamespace(config.namespace);
  const urlIn = (name: string): URL | undefined => {
    const { url } = (config.extensions?.[name] ?? {}) as { url?: string };
    return url ? new URL(url) : undefined;
  };
  // With the same credentials, which it verifies with the API server.
  const events = urlIn(eventsExtension);
  const gateway = urlIn(gatewayExtension);
  return {
    cluster: config,
    client: new KubeClient(explained(httpsTransport(config), config, gateway !== undefined)),
    namespace: options.namespace ?? config.namespace,
    gateway,
    gatewayTls: urlIn(gatewayTlsExtension),
    registry: urlIn(registryExtension),
    publisher: urlIn(publisherExtension),
    events: events && httpsTransport({ ...config, server: events.origin }),
  };
}

/** The cluster of the options, or of the platform of this directory or one above it; a UserError where none is known. */
export function loadConfig(options: GlobalOptions): ClusterConfig {
  const kubeconfig = options.kubeconfig || undefined;
  // `$KUBECONFIG` or `~/.kube/config` (both the loader's own rule), but a platform of this directory first.
  const isChosen = kubeconfig !== undefined || namedKubeconfig() !== undefined;
  const local = isChosen ? undefined : localKubeconfig(process.cwd());
  try {
    const config = loadKubeconfig(kubeconfig ?? local);
    if (local !== undefined) assertLocal(config, local);
    return config;
  } catch (error) {
    if (error instanceof UserError) throw error;
    const isLacking = kubeconfig !== undefined && !existsSync(kubeconfig);
    const why = isLacking
      ? `the kubeconfig ${kubeconfig} does not exist`
      : isChosen || local !== undefined || hasOther()
        ? messageOf(error)
        : "no platform was started in this directory or one above it, KUBECONFIG is not set, and ~/.kube/config does not exist";
    throw new UserError(
      `no cluster to talk to: ${why}`,
      `start one with \`${startCommand()}\`, change to the directory where it was started, or name a kubeconfig with --kubeconfig`,
      { cause: undefined },
    );
  }
}

/** The file of `loadConfig`, where it is a single one. */
export function kubeconfigFile({ kubeconfig }: GlobalOptions): string | undefined {
  return kubeconfig || (namedKubeconfig() ?? localKubeconfig(process.cwd()));
}

/** What `KUBECONFIG` names; an empty one, and one of separators alone, is the same as none. */
export function namedKubeconfig(): string | undefined {
  const named = process.env["KUBECONFIG"] ?? "";
  return named.split(path.delimiter).some((each) => each !== "") ? named : undefined;
}

/** Whether the loader has found something by itself. */
const hasOther = (): boolean =>
  process.env["KUBERNETES_SERVICE_HOST"] !== undefined ||
  existsSync(path.join(process.env["HOME"] || homedir(), ".kube", "config"));

/** How manifests are read: what names no namespace is of the options' one, or the kubeconfig's. */
export function readOptions(options: GlobalOptions & { recursive?: boolean }): {
  isRecursive: boolean;
  namespace: () => string;
} {
  return {
    isRecursive: options.recursive ?? false,
    namespace: () => options.namespace ?? loadConfig(options).namespace,
  };
}

/** A Function's address through the gateway. */
export function urlOf(gateway: URL, name: string, namespace: string): string {
  const port = gateway.port ? `:${gateway.port}` : "";
  return `${gateway.protocol}//${name}.${namespace}.localhost${port}/`;
}
