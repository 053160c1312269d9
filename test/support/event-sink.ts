import { createServer, type Server } from "node:http";
import { type Platform } from "./platform.ts";

/** A server of the test as the one endpoint of a Service, and a Subscription to it: what it gets is counted by id. */
export class EventSink {
  /** When each event was received, in milliseconds of `performance.now()`. */
  readonly received = new Map<string, number[]>();
  readonly #port: number;
  #server: Server | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  async open(): Promise<void> {
    const server = createServer((request, response) => {
      const id = String(request.headers["ce-id"]);
      const times = this.received.get(id);
      if (times) times.push(performance.now());
      else this.received.set(id, [performance.now()]);
      request.resume().once("end", () => response.end());
    });
    await new Promise<void>((resolve) => server.listen(this.#port, "0.0.0.0", resolve));
    this.#server = server;
  }

  close(): void {
    this.#server?.close();
    this.#server?.closeAllConnections();
  }

  /** Resolves when the Subscription `orders`, to events `order.created.v1` of `shop`, is served. */
  async subscribe(platform: Platform, spec: object): Promise<void> {
    const items = [
      {
        apiVersion: "v1",
        kind: "Service",
        metadata: { name: "sink" },
        spec: { ports: [{ port: 80, targetPort: this.#port }] },
      },
      {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: { name: "sink", labels: { "kubernetes.io/service-name": "sink" } },
        addressType: "IPv4",
        endpoints: [{ addresses: [platform.hostAddress], conditions: { ready: true } }],
        ports: [{ name: "", port: this.#port, protocol: "TCP" }],
      },
      {
        apiVersion: "eventing.kyma-project.io/v1alpha2",
        kind: "Subscription",
        metadata: { name: "orders" },
        spec: {
          sink: "http://sink.default.svc.cluster.local",
          source: "shop",
          types: ["order.created.v1"],
          ...spec,
        },
      },
    ];
    await platform.k("apply -f -", JSON.stringify({ apiVersion: "v1", kind: "List", items }));
    await platform.k("wait --for=jsonpath={.status.ready}=true subscription/orders --timeout=60s");
  }
}
