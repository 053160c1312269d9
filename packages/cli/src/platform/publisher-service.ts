/** The publisher's name inside the cluster, the same as in Kyma's Eventing; Functions get it as a variable. */
import { functions } from "@spry/function";
import {
  Informer,
  isNotFound,
  type KubeClient,
  type KubeObject,
  type Logger,
  type Resource,
  resources,
} from "@spry/kube";
import { systemNamespace } from "./system-objects.ts";

const name = "eventing-publisher-proxy";
const managedBy = "app.kubernetes.io/managed-by";
const labels = { [managedBy]: "spry" };
const portName = "http-publish";

interface Endpoint {
  address: string;
  port: number;
}

export interface AnnounceOptions {
  client: KubeClient;
  endpoint: Endpoint;
  log: Logger;
  signal: AbortSignal;
}

/**
 * Keeps the Service as long as there is no Function of its name: such a Function replaces the publisher and
 * gets the events that other Functions publish. Clients outside still reach the platform's publisher at its port.
 */
export async function announcePublisher(options: AnnounceOptions): Promise<void> {
  const { client, endpoint, log, signal } = options;
  const only = { namespace: systemNamespace, fieldSelector: `metadata.name=${name}`, log };
  const standIns = new Informer(client, functions, only);
  const services = new Informer(client, resources.services, only);
  let isStoodInFor = false;
  const follow = async () => {
    const wasStoodInFor = isStoodInFor;
    isStoodInFor = [...standIns.list()].some(({ metadata }) => !metadata.deletionTimestamp);
    // That of a Function is deleted after the Function: until then it is not written to, and so not deleted with what is ours.
    if (!isStoodInFor) return services.size === 0 ? announce(client, endpoint) : undefined;
    if (!wasStoodInFor)
      log.warn(
        { function: name, namespace: systemNamespace },
        "a Function has taken the publisher's place",
      );
    await withdraw(client);
  };
  let last = Promise.resolve();
  const ended = Promise.all([standIns.run(signal), services.run(signal)]);
  await Promise.race([Promise.all([standIns.synced, services.synced]), ended]);
  if (signal.aborted) return;
  // The one that a former process has left may name another port.
  const [left] = services.list();
  if (left?.metadata.labels?.[managedBy] === labels[managedBy]) await announce(client, endpoint);
  const failed = Promise.withResolvers<never>();
  const go = () => {
    last = last.then(follow).catch(failed.reject);
  };
  standIns.onChange(go);
  services.onChange(go);
  go();
  await Promise.race([failed.promise, ended]);
}

/** Its EndpointSlice ends with it. */
async function withdraw(client: KubeClient): Promise<void> {
  await deleteOwn(client, resources.services);
  await deleteOwn(client, resources.endpointSlices);
}

/** Not the Function's, which has the same name. */
async function deleteOwn<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
): Promise<void> {
  const target = { namespace: systemNamespace, name };
  try {
    const { metadata } = await client.get(resource, target);
    if (metadata.labels?.[managedBy] === labels[managedBy]) await client.delete(resource, target);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** A Service without a selector: the publisher is a process of the platform, and not a Pod. */
async function announce(client: KubeClient, endpoint: Endpoint): Promise<void> {
  const metadata = { name, namespace: systemNamespace, labels };
  await client.apply(
    resources.services,
    { metadata, spec: { ports: [{ name: portName, port: 80, targetPort: endpoint.port }] } },
    { force: true },
  );
  await client.apply(
    resources.endpointSlices,
    {
      metadata: {
        ...metadata,
        labels: {
          ...labels,
          "kubernetes.io/service-name": name,
          "endpointslice.kubernetes.io/managed-by": "spry",
        },
      },
      addressType: "IPv4",
      endpoints: [{ addresses: [endpoint.address], conditions: { ready: true } }],
      ports: [{ name: portName, port: endpoint.port, protocol: "TCP" }],
    },
    { force: true },
  );
}
