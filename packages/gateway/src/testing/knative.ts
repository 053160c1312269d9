/** For the tests of this room: Routes and Revisions as the room `serving` writes them. */
import {
  domainMappings,
  gatewaySliceManager,
  knative,
  type Revision,
  type Route,
  type TrafficTarget,
} from "@spry/function";
import {
  type Condition,
  type KubeClient,
  type KubeObject,
  type Resource,
  resources,
} from "@spry/kube";

const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

/** Definitions without rules: what the gateway reads has passed those of `serving`. */
export async function defineKnative(client: KubeClient): Promise<void> {
  const all: Resource<KubeObject>[] = [knative.routes, knative.revisions, domainMappings];
  for (const resource of all) {
    await client.create(resources.customResourceDefinitions, definitionOf(resource) as never);
  }
}

function definitionOf({ group, version, kind, plural }: Resource<KubeObject>): object {
  const schema = {
    type: "object",
    properties: { metadata: { type: "object" }, spec: anything, status: anything },
  };
  return {
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: schema },
          subresources: { status: {} },
        },
      ],
    },
  };
}

export class KnativeObjects {
  readonly #client: KubeClient;

  constructor(client: KubeClient) {
    this.#client = client;
  }

  async revision(
    name: string,
    spec: Partial<Revision["spec"]> = {},
    conditions: Condition[] = [],
  ): Promise<void> {
    const metadata = { name, namespace: "default" };
    const revision = { metadata, spec: { containers: [], ...spec } };
    await this.#client.create(knative.revisions, revision);
    if (conditions.length > 0) {
      const status = { conditions };
      await this.#client.patch(knative.revisions, metadata, { status }, { subresource: "status" });
    }
  }

  /** Leads callers inside the cluster to a gateway (ADR 0018); without an address, deletes the slice. */
  async gatewaySlice(service: string, address: string | undefined, port = 0): Promise<void> {
    const metadata = { name: `${service}-gateway`, namespace: "default" };
    if (address === undefined) return await this.#client.delete(resources.endpointSlices, metadata);
    await this.#client.create(resources.endpointSlices, {
      metadata: {
        ...metadata,
        labels: {
          "kubernetes.io/service-name": service,
          "endpointslice.kubernetes.io/managed-by": gatewaySliceManager,
        },
      },
      addressType: "IPv4",
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: ["http", "http2"].map((name) => ({ name, port, protocol: "TCP" })),
    });
  }

  /** A Pod of the Revision that speaks HTTP/2 with prior knowledge. */
  async h2cPods(revision: string, address: string, port: number): Promise<void> {
    const service = `${revision}-private`;
    await this.#client.create(resources.endpointSlices, {
      metadata: {
        name: `${service}-h2c`,
        namespace: "default",
        labels: { "kubernetes.io/service-name": service },
      },
      addressType: "IPv4",
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: [{ name: "http2", port, protocol: "TCP", appProtocol: "kubernetes.io/h2c" }],
    });
  }

  async routeStatus(name: string, status: object): Promise<void> {
    const target = { name, namespace: "default" };
    await this.#client.patch(knative.routes, target, { status }, { subresource: "status" });
  }

  /** Creates the Route, or changes its traffic. Each entry names its Revision. */
  async route(
    name: string,
    traffic: TrafficTarget[],
    labels: Record<string, string> = {},
  ): Promise<void> {
    const metadata = { name, namespace: "default" };
    const { items } = await this.#client.list(knative.routes);
    if (!items.some((each) => each.metadata.name === name)) {
      const route: Route = { metadata: { ...metadata, labels }, spec: {} };
      await this.#client.create(knative.routes, route);
    }
    await this.#client.patch(
      knative.routes,
      metadata,
      { status: { traffic } },
      { subresource: "status" },
    );
  }
}
