import { gatewaySliceManager } from "@spry/function";
import {
  type EndpointSlice,
  isNotFound,
  type KubeClient,
  resources,
  type Service,
} from "@spry/kube";

const managerLabel = "endpointslice.kubernetes.io/managed-by";

export interface ServiceSlices {
  /** Those that lead to the gateway. */
  gateway: EndpointSlice[];
  /** All others: those that lead to the Pods of a Deployment. */
  others: EndpointSlice[];
}

/** Who answers for a Service now. Asked only while a Function changes between the two ways of serving. */
export async function slicesOf(
  client: KubeClient,
  { namespace, name }: { namespace: string; name: string },
): Promise<ServiceSlices> {
  const labelSelector = `kubernetes.io/service-name=${name}`;
  const { items } = await client.list(resources.endpointSlices, { namespace, labelSelector });
  const isGateway = ({ metadata }: EndpointSlice) =>
    metadata.labels?.[managerLabel] === gatewaySliceManager;
  return {
    gateway: items.filter(isGateway),
    others: items.filter((slice) => !isGateway(slice)),
  };
}

/** Whether one of these slices has a ready endpoint. */
export function haveReady(slices: readonly EndpointSlice[]): boolean {
  return slices.some(({ endpoints }) =>
    endpoints?.some(({ conditions }) => conditions?.ready ?? true),
  );
}

/**
 * Removes what Kubernetes leaves behind when a Service loses its selector: the Endpoints first, because a controller
 * mirrors those of a Service without selector into slices (`endpointslicemirroring`).
 */
export async function removeFormerEndpoints(
  client: KubeClient,
  { namespace, name }: { namespace: string; name: string },
  slices: readonly EndpointSlice[],
): Promise<void> {
  await deleteQuietly(() => client.delete(resources.endpoints, { namespace, name }));
  for (const { metadata } of slices) {
    const slice = { namespace, name: metadata.name ?? "" };
    await deleteQuietly(() => client.delete(resources.endpointSlices, slice));
  }
}

export function hasSelector(service: Service | undefined): boolean {
  return Object.keys(service?.spec?.selector ?? {}).length > 0;
}

async function deleteQuietly(remove: () => Promise<unknown>): Promise<void> {
  try {
    await remove();
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
