/** The registry that a namespace's sources go to, as the user who deploys may use it. */
import { activeRegistry, repositoryIn } from "@spry/controller";
import { names } from "@spry/function";
import { RegistryClient } from "@spry/image";
import {
  isForbidden,
  isNotFound,
  type KubeClient,
  resources,
  type Secret,
  sleep,
  systemClock,
} from "@spry/kube";
import { type Connection } from "../connection.ts";
import { refuseMissingNamespace } from "../missing-namespace.ts";
import { UserError } from "../user-error.ts";

/** The controller gives a namespace its registry in moments; one that was made just before is waited for. */
const registryWaitMs = 10_000;
const askAgainMs = 100;

export interface SourceRegistry {
  client: RegistryClient;
  /** `host/path` of the Function's repository, as this machine names it. */
  push: string;
  /** The same as the cluster names it. */
  pull: string;
  /** Where it is reached, for messages. */
  address: string;
  /** Why it cannot be reached, where more is known than the connection's own error. */
  problem(): UserError | undefined;
  close(): void;
}

/**
 * Finds it by the namespace's Secrets (docs/adr/0012-registry-logins.md): a user who may read them may push. `given`: where this machine reaches it,
 * which takes precedence over what the kubeconfig and the Secret say. The registry in a cluster is reached by a port-forward until `close`.
 */
export async function sourceRegistry(
  connection: Connection,
  name: string,
  given: string | undefined,
): Promise<SourceRegistry> {
  const { client, namespace, registry: known } = connection;
  const { active, secrets } = await registryOf(client, namespace);
  const path = repositoryIn(active, namespace, name);
  const secret = secrets.get(`${namespace}/${active.secretName}`);
  const login = loginIn(secret, [active.push, active.pull]);
  const url = given ?? (active.isInternal ? known?.href.replace(/\/$/, "") : undefined);
  if (url !== undefined && !URL.canParse(url))
    throw new UserError(`${url} is not a URL`, "write it as http://HOST:PORT");
  const forwarded =
    url === undefined && active.isInternal
      ? // It loads a WebSocket client.
        await (await import("./forwarded-registry.ts")).forwardRegistry(connection, active.push)
      : undefined;
  const address =
    url ??
    forwarded?.url ??
    (active.isInternal ? `http://${active.push}` : `https://${active.push}`);
  return {
    client: new RegistryClient({
      resolve: () => ({ url: new URL(address).origin, ...login }),
      authority: textIn(secret, "ca.crt") || undefined,
      // The user waits for the deployment: only the first address is tried.
      attempts: 2,
    }),
    push: `${active.push}/${path}`,
    pull: `${active.pull}/${path}`,
    address: forwarded ? `${active.push} (by a port-forward)` : address,
    problem: () => forwarded?.problem(),
    close: () => forwarded?.close(),
  };
}

/** @throws UserError if the namespace does not exist, or has got no registry within `registryWaitMs` */
async function registryOf(client: KubeClient, namespace: string) {
  const candidates = [
    names.remoteRegistrySecret,
    names.registrySecret,
    names.internalRegistrySecret,
  ];
  const last = performance.now() + registryWaitMs;
  for (;;) {
    const found = await Promise.all(candidates.map((each) => secretOf(client, namespace, each)));
    const secrets = new Map<string, Secret>();
    for (const secret of found)
      if (secret) secrets.set(`${namespace}/${secret.metadata.name}`, secret);
    const active = activeRegistry(
      {
        registrySecrets: secrets,
        remoteRegistrySecrets: secrets,
        internalRegistrySecrets: secrets,
      },
      namespace,
    );
    if (active) return { active, secrets };
    await refuseMissingNamespace(client, namespace);
    if (performance.now() > last)
      throw new UserError(
        `namespace ${namespace} has no registry yet: Secret ${names.registrySecret} does not exist`,
        "check that Spry runs in this cluster, and that it serves this namespace",
      );
    await sleep(systemClock, askAgainMs);
  }
}

async function secretOf(
  client: KubeClient,
  namespace: string,
  name: string,
): Promise<Secret | undefined> {
  try {
    return await client.get(resources.secrets, { namespace, name });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    if (isForbidden(error))
      throw new UserError(
        `you may not read the Secret ${name} in namespace ${namespace}, which has the registry's login`,
        "ask for the right to get Secrets there, or deploy from Git with spec.source.gitRepository",
      );
    throw error;
  }
}

const textIn = (secret: Secret | undefined, key: string): string =>
  Buffer.from(secret?.data?.[key] ?? "", "base64").toString();

/** Of `.dockerconfigjson`, by any of the registry's addresses. */
function loginIn(
  secret: Secret | undefined,
  hosts: readonly string[],
): { username?: string; password?: string } {
  const text = textIn(secret, ".dockerconfigjson");
  try {
    const { auths = {} } = JSON.parse(text) as { auths?: Record<string, { auth?: string }> };
    const [host] = [...hosts, ...Object.keys(auths)].filter((each) => auths[each]?.auth);
    const pair = Buffer.from(auths[host ?? ""]?.auth ?? "", "base64").toString();
    const colon = pair.indexOf(":");
    return colon < 0 ? {} : { username: pair.slice(0, colon), password: pair.slice(colon + 1) };
  } catch {
    return {};
  }
}
