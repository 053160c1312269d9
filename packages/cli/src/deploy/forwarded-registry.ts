/** The cluster's own registry on this machine, by a port-forward to its Pod: on a cluster nothing else leads there from outside. */
import { isForbidden, isNotFound, messageOf, type Pod, resources, type Service } from "@spry/kube";
import { type Connection } from "../connection.ts";
import { forwardPort } from "../port-forward.ts";
import { UserError } from "../user-error.ts";

/** Where it is reached until `close`. */
export interface ForwardedRegistry {
  url: string;
  /** Why the connections do not come through; undefined as long as they do. */
  problem(): UserError | undefined;
  close(): void;
}

const rights = "list pods, get services, create and get pods/portforward";

/** `pushAddress`: as builders know it, `<service>.<namespace>.svc…:<port>`. Undefined for an address of another form. */
export async function forwardRegistry(
  { client, cluster }: Pick<Connection, "client" | "cluster">,
  pushAddress: string,
): Promise<ForwardedRegistry | undefined> {
  const [, name, namespace, port] =
    /^([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\.[a-z0-9.-]+)?:(\d+)$/.exec(pushAddress) ?? [];
  if (name === undefined || namespace === undefined) return undefined;
  const service = await allowed(namespace, () =>
    client.get(resources.services, { namespace, name }),
  );
  const labelSelector = Object.entries(service.spec?.selector ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join();
  const { items } = await allowed(namespace, () =>
    client.list(resources.pods, { namespace, labelSelector }),
  );
  const pod = labelSelector === "" ? undefined : items.find(isReady);
  if (!pod)
    throw new UserError(
      `no Pod of the registry ${namespace}/${name} is ready`,
      `kubectl get pods -n ${namespace} -l ${labelSelector} shows why; try again when it is`,
    );
  // It says more than the connection that was closed because of it.
  let reason: string | undefined;
  const forwarding = await forwardPort(cluster, {
    namespace,
    pod: pod.metadata.name ?? "",
    remotePort: targetPortOf(service, Number(port)),
    localPort: 0,
    report: (line) => (reason ??= line),
  });
  return {
    url: `http://127.0.0.1:${forwarding.port}`,
    problem: () =>
      reason === undefined
        ? undefined
        : isRefused(reason)
          ? forbidden(namespace)
          : new UserError(`the registry's port cannot be forwarded: ${reason}`),
    close: () => forwarding.close(),
  };
}

function isReady({ status }: Pod): boolean {
  return (status?.conditions ?? []).some(
    ({ type, status }) => type === "Ready" && status === "True",
  );
}

/** A Service can name a port by the container's name for it; ours has the number. */
function targetPortOf({ spec }: Service, port: number): number {
  const found = spec?.ports?.find((each) => each.port === port)?.targetPort;
  return typeof found === "number" ? found : port;
}

/** As the WebSocket library words it. */
const isRefused = (reason: string) => / 40[13]$/.test(reason);

function forbidden(namespace: string): UserError {
  return new UserError(
    `you may not forward the port of the cluster's registry, which is in namespace ${namespace}`,
    `ask for these rights there: ${rights}; or name an address of the registry with --registry`,
  );
}

async function allowed<T>(namespace: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (isForbidden(error)) throw forbidden(namespace);
    if (isNotFound(error))
      throw new UserError(`the cluster's registry does not exist: ${messageOf(error)}`);
    throw error;
  }
}
