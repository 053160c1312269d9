import { type Function, podLabelsOf, type Revision, type Route } from "@spry/function";
import { type EndpointSlice, type Informer, type ObjectKey, type Service } from "@spry/kube";
import { type Peers } from "./peers.ts";
import { type Called } from "./policy-peers.ts";

export interface CalledSources {
  routes: Informer<Route>;
  revisions: Informer<Revision>;
  functions: Informer<Function>;
  /** Those of Functions. */
  services: Informer<Service>;
  /** Indexed by `service`, without those that lead to gateways. */
  slices: Informer<EndpointSlice>;
}

const defaultPort = 8080;
/** Of the one container of a Function's Pods. */
const functionPortName = "http";

/**
 * The Pods that requests to a Route or a Function reach, whether there are any at present or not; empty for what is
 * neither, and for a Service of a Function that does not exist.
 */
export function calledBy(sources: CalledSources, key: ObjectKey): Called[] {
  const revisions = ofRevisions(sources, key);
  const fn = sources.functions.get(key);
  const selector = sources.services.get(key)?.spec?.selector ?? {};
  // While a Function changes the way it is served, there are Pods of both ways.
  const hasDeployment = revisions.length === 0 || Object.keys(selector).length > 0;
  return fn && hasDeployment ? [...revisions, ofFunction(fn)] : revisions;
}

/** The Pods behind a Service of any kind, as far as its EndpointSlices name them. */
export function calledAt({ slices }: CalledSources, peers: Peers, service: ObjectKey): Called[] {
  return slices.byIndex("service", service).flatMap(({ endpoints, ports }) => {
    const addresses = (endpoints ?? []).flatMap((endpoint) => endpoint.addresses);
    return addresses.flatMap((address) => {
      const pod = peers.podAt(address);
      if (!pod) return [];
      const { namespace = "", labels = {} } = pod.metadata;
      const named = pod.spec?.containers.flatMap((container) => container.ports ?? []) ?? [];
      return (ports ?? []).flatMap(({ port }) => {
        const portName = named.find(({ containerPort }) => containerPort === port)?.name;
        return port === undefined ? [] : { namespace, labels, port, portName };
      });
    });
  });
}

function ofRevisions({ routes, revisions }: CalledSources, route: ObjectKey): Called[] {
  const [namespace = ""] = route.split("/");
  const traffic = routes.get(route)?.status?.traffic ?? [];
  const names = new Set(traffic.flatMap(({ revisionName }) => revisionName ?? []));
  return [...names].flatMap((name) => {
    const revision = revisions.get(`${namespace}/${name}`);
    if (!revision) return [];
    const { metadata, spec } = revision;
    // As its Deployment labels its Pods.
    const labels = {
      app: name,
      ...metadata.labels,
      "serving.knative.dev/revision": name,
      "serving.knative.dev/revisionUID": metadata.uid ?? "",
    };
    const [port] = spec.containers?.flatMap(({ ports = [] }) => ports) ?? [];
    return {
      namespace,
      labels,
      port: port?.containerPort ?? defaultPort,
      portName: port?.name ?? "user-port",
    };
  });
}

function ofFunction(fn: Function): Called {
  return {
    namespace: fn.metadata.namespace ?? "",
    labels: podLabelsOf(fn),
    port: defaultPort,
    portName: functionPortName,
  };
}
