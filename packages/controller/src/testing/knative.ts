/** What the serving room does for a Function's Knative Service, by hand. */
import { type Configuration, gatewaySliceManager, knative, type KService } from "@spry/function";
import {
  type CustomResourceDefinition,
  type EndpointSlice,
  isNotFound,
  type Resource,
  resources,
} from "@spry/kube";
import { namespace, type TestPlatform } from "./platform.ts";

const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

/** Accepts whatever the controller writes: what is permitted is the serving room's to say. */
function openCrd({ group, plural, kind, version }: Resource): CustomResourceDefinition {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, plural },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: anything },
        },
      ],
    },
  };
}

export async function installKnative({ client }: TestPlatform): Promise<void> {
  for (const resource of [knative.services, knative.configurations, knative.revisions])
    await client.apply(resources.customResourceDefinitions, openCrd(resource));
}

export function kserviceOf(platform: TestPlatform, name: string): Promise<KService> {
  return platform.until(`Knative Service ${name}`, () => find(platform, name));
}

export async function find({ client }: TestPlatform, name: string): Promise<KService | undefined> {
  try {
    return await client.get(knative.services, { namespace, name });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Reports the state of the newest Revision, as the serving room does. */
export async function reportServing(
  platform: TestPlatform,
  name: string,
  ready: "True" | "False" | "Unknown" = "True",
  message = "",
): Promise<void> {
  const kservice = await kserviceOf(platform, name);
  const revision = kservice.spec.template.metadata?.name ?? "";
  const condition = (type: string, status: string) => ({ type, status, reason: "Said", message });
  await platform.client.patch(
    knative.services,
    { namespace, name },
    {
      status: {
        observedGeneration: kservice.metadata.generation,
        latestCreatedRevisionName: revision,
        ...(ready === "True" ? { latestReadyRevisionName: revision } : {}),
        conditions: [
          condition("Ready", ready),
          condition("ConfigurationsReady", ready),
          condition("RoutesReady", "True"),
        ],
      },
    },
    { subresource: "status" },
  );
}

/** The Configuration of a Function's Knative Service, as the serving room makes it. */
export async function createConfiguration(
  platform: TestPlatform,
  name: string,
): Promise<Configuration> {
  const { metadata, spec } = await kserviceOf(platform, name);
  return platform.client.create(knative.configurations, {
    metadata: {
      name,
      namespace,
      labels: {
        "serving.knative.dev/service": name,
        "serving.knative.dev/serviceUID": metadata.uid ?? "",
      },
    },
    spec: { template: spec.template },
  });
}

/** A slice of the Function's Service, that leads to the gateway or to Pods. */
export function writeSlice(
  { client }: TestPlatform,
  service: string,
  leadsTo: "gateway" | "pods",
): Promise<EndpointSlice> {
  const manager = leadsTo === "gateway" ? gatewaySliceManager : "endpointslice-controller.k8s.io";
  return client.apply(resources.endpointSlices, {
    metadata: {
      name: `${service}-${leadsTo}`,
      namespace,
      labels: {
        "kubernetes.io/service-name": service,
        "endpointslice.kubernetes.io/managed-by": manager,
      },
    },
    addressType: "IPv4",
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
    endpoints: [{ addresses: ["10.0.0.1"], conditions: { ready: true } }],
  });
}

export async function slicesOf({ client }: TestPlatform, service: string): Promise<string[]> {
  const labelSelector = `kubernetes.io/service-name=${service}`;
  const { items } = await client.list(resources.endpointSlices, { namespace, labelSelector });
  return items.map(({ metadata }) => metadata.name ?? "").sort();
}
