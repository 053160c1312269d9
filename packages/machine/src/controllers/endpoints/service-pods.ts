/** Which Pods stand behind a Service, and on which ports: what slices and Endpoints have in common. */
import {
  type EndpointSlice,
  matchesLabels,
  type Pod,
  requirementsOf,
  type Service,
} from "@spry/kube";
import { byNamespace, type ControllerContext } from "../context.ts";
import { SelectorIndex } from "./selector-index.ts";

export const serviceLabel = "kubernetes.io/service-name";
export const headlessLabel = "service.kubernetes.io/headless";
export const managedByLabel = "endpointslice.kubernetes.io/managed-by";

export type Port = NonNullable<EndpointSlice["ports"]>[number];

export function hasSelector({ spec }: Service): boolean {
  return Object.keys(spec?.selector ?? {}).length > 0;
}

export function isHeadless({ spec }: Service): boolean {
  return (spec?.clusterIP ?? "None") === "None";
}

export function podsOf(service: Service, { caches }: ControllerContext): Pod[] {
  const { namespace = "" } = service.metadata;
  return caches.pods.byIndex(byNamespace, namespace).filter((pod) => selects(service, pod));
}

/** Calls back with the key of each Service whose Pods have changed. */
export function onServicesOfPods(
  { caches }: ControllerContext,
  changed: (key: string) => void,
): void {
  const index = new SelectorIndex(caches.services);
  caches.pods.onChange((change) => {
    const pods = change.type === "updated" ? [change.previous, change.object] : [change.object];
    for (const key of new Set(pods.flatMap((pod) => index.servicesOf(pod)))) changed(key);
  });
}

function selects(service: Service, pod: Pod): boolean {
  if (!hasSelector(service)) return false;
  const matchLabels = service.spec?.selector ?? {};
  return matchesLabels(requirementsOf({ matchLabels }), pod.metadata.labels);
}

/** The Service's ports as this Pod has them; a named port that it lacks is left out. */
export function portsOf(service: Service, pod: Pod): Port[] {
  return (service.spec?.ports ?? []).flatMap((port) => {
    const protocol = port.protocol ?? "TCP";
    const wanted = port.targetPort ?? port.port;
    const number = typeof wanted === "number" ? wanted : namedPort(pod, wanted, protocol);
    if (number === undefined) return [];
    const { appProtocol } = port;
    return {
      name: port.name ?? "",
      protocol,
      port: number,
      ...(appProtocol ? { appProtocol } : {}),
    };
  });
}

function namedPort(pod: Pod, name: string, protocol: string): number | undefined {
  const sidecars = (pod.spec?.initContainers ?? []).filter(
    (each) => each.restartPolicy === "Always",
  );
  for (const container of [...(pod.spec?.containers ?? []), ...sidecars]) {
    const port = container.ports?.find(
      (each) => each.name === name && (each.protocol ?? "TCP") === protocol,
    );
    if (port) return port.containerPort;
  }
  return undefined;
}
