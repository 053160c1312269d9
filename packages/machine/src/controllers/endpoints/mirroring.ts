/**
 * Endpoints that people or programs write for a Service without a selector become EndpointSlices, by which requests are
 * routed (Kubernetes, "EndpointSlice mirroring").
 */
import { isIPv6 } from "node:net";
import {
  Controller,
  controllerRef,
  type Endpoints,
  type EndpointSlice,
  keyOf,
  resources,
} from "@spry/kube";
import { byService, type ControllerContext, serviceKeyOf } from "../context.ts";
import { hashName } from "../pod-template.ts";
import { hasSelector, managedByLabel, serviceLabel } from "./service-pods.ts";
import { applySlices } from "./slices.ts";

const manager = "endpointslicemirroring-controller.k8s.io";
const skipLabel = "endpointslice.kubernetes.io/skip-mirror";
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader";
/** Kubernetes' own: `--mirroring-max-endpoints-per-subset`. */
const maxAddresses = 1000;

type Subset = NonNullable<Endpoints["subsets"]>[number];
type Endpoint = EndpointSlice["endpoints"][number];

export function createEndpointsMirroring(context: ControllerContext): Controller {
  const { caches, clock, log } = context;
  const controller = new Controller({
    name: "endpointslicemirroring",
    workers: 1,
    clock,
    log,
    reconcile: (key) => reconcileEndpoints(context, key),
  });
  caches.services.onChange(({ object }) => controller.enqueue(keyOf(object)));
  caches.endpoints.onChange(({ object }) => controller.enqueue(keyOf(object)));
  caches.endpointSlices.onChange(({ object }) => {
    if (isMirror(object)) controller.enqueue(serviceKeyOf(object));
  });
  return controller;
}

function isMirror(slice: EndpointSlice): boolean {
  return slice.metadata.labels?.[managedByLabel] === manager;
}

async function reconcileEndpoints(context: ControllerContext, key: string): Promise<void> {
  const { caches } = context;
  const service = caches.services.get(key);
  const endpoints = caches.endpoints.get(key);
  const present = caches.endpointSlices.byIndex(byService, key).filter(isMirror);
  const isMirrored = service && endpoints && !hasSelector(service) && mayBeMirrored(endpoints);
  await applySlices(context, present, isMirrored ? mirrorsOf(endpoints) : []);
}

function mayBeMirrored({ metadata }: Endpoints): boolean {
  return (
    !metadata.deletionTimestamp &&
    metadata.labels?.[skipLabel] !== "true" &&
    metadata.annotations?.[leaderAnnotation] === undefined
  );
}

/** One slice for each subset and family of addresses. */
export function mirrorsOf(endpoints: Endpoints): EndpointSlice[] {
  return (endpoints.subsets ?? []).flatMap((subset, index) => {
    const all = endpointsOf(subset);
    const families = [
      { addressType: "IPv4" as const, found: all.filter(({ addresses }) => !isSix(addresses)) },
      { addressType: "IPv6" as const, found: all.filter(({ addresses }) => isSix(addresses)) },
    ];
    return families
      .filter(({ found }) => found.length > 0)
      .map(({ addressType, found }) => sliceOf(endpoints, subset, index, addressType, found));
  });
}

function isSix([address = ""]: string[]): boolean {
  return isIPv6(address);
}

function endpointsOf({ addresses = [], notReadyAddresses = [] }: Subset): Endpoint[] {
  const told = [
    ...addresses.map((address) => ({ address, ready: true })),
    ...notReadyAddresses.map((address) => ({ address, ready: false })),
  ];
  return told.slice(0, maxAddresses).map(({ address, ready }) => ({
    addresses: [address.ip],
    conditions: { ready },
    ...(address.hostname ? { hostname: address.hostname } : {}),
    ...(address.nodeName ? { nodeName: address.nodeName } : {}),
    ...(address.targetRef ? { targetRef: address.targetRef } : {}),
  }));
}

function sliceOf(
  endpoints: Endpoints,
  { ports = [] }: Subset,
  index: number,
  addressType: "IPv4" | "IPv6",
  found: Endpoint[],
): EndpointSlice {
  const { namespace = "", name = "", labels } = endpoints.metadata;
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      namespace,
      generateName: `${name}-`,
      name: `${name}-${hashName({ addressType, index, ports }, 5)}`,
      labels: { ...labels, [serviceLabel]: name, [managedByLabel]: manager },
      ownerReferences: [controllerRef(resources.endpoints, endpoints)],
    },
    addressType,
    endpoints: found,
    ports: ports.map(({ name: portName = "", protocol = "TCP", ...port }) => ({
      name: portName,
      protocol,
      ...port,
    })),
  };
}
