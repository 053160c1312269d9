/** Two namespaces and one host, which one of them has by a DomainMapping and the other wants by an APIRule, or the other way round. */
import { domainMappings } from "@spry/function";
import { resources } from "@spry/kube";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type ExposureBench, plain, startExposureBench } from "../testing/exposure.ts";

let bench: ExposureBench;

/** `default` has the Knative Route `mine`; `thief` has the Service `hello`. */
beforeEach(async () => {
  bench = await startExposureBench({ withKnative: true });
  await bench.gatewayOf("kyma-gateway", [plain(["*.example.com"])]);
  const pod = await bench.pod((_, response) => response.end("mapped"));
  await bench.knative.revision("a");
  await bench.revisionPods("a", [pod]);
  await bench.knative.route("mine", [{ revisionName: "a", percent: 100 }]);
  await bench.client.create(resources.namespaces, { metadata: { name: "thief" } });
  await bench.client.create(resources.services, {
    metadata: { name: "hello", namespace: "thief" },
    spec: { ports: [{ port: 80 }] },
  });
  const { port, address } = await bench.pod((_, response) => response.end("exposed"));
  await bench.client.create(resources.endpointSlices, {
    metadata: {
      name: "hello",
      namespace: "thief",
      labels: { "kubernetes.io/service-name": "hello" },
    },
    addressType: "IPv4",
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: [{ name: "", port, protocol: "TCP" }],
  });
});
afterEach(() => bench.close());

async function map(): Promise<void> {
  const metadata = { name: "www.example.com", namespace: "default" };
  const spec = { ref: { kind: "Service", name: "mine" } };
  await bench.client.create(domainMappings, { metadata, spec });
  const conditions = ["DomainClaimed", "ReferenceResolved"].map((type) => ({
    type,
    status: "True" as const,
  }));
  await bench.client.patch(
    domainMappings,
    metadata,
    { status: { conditions } },
    { subresource: "status" },
  );
  await bench.heard();
}

const expose = (host: string) =>
  bench.apiRule("taker", { hosts: [host], service: { name: "hello", port: 80 } }, "thief");

/** Times of objects are whole seconds. */
const aSecond = () => new Promise((resolve) => setTimeout(resolve, 1_001));
const body = async () => (await bench.call({ host: "www.example.com" })).body;

test.each(["www.example.com", "*.example.com"])(
  "the APIRule of another namespace for %s does not take the host of a DomainMapping that was there first",
  async (host) => {
    await map();
    expect(await body()).toBe("mapped");
    await aSecond();
    await expose(host);
    expect(await body()).toBe("mapped");
  },
);

test.each(["www.example.com", "*.example.com"])(
  "the DomainMapping of another namespace does not take a host from an APIRule for %s that was there first",
  async (host) => {
    await expose(host);
    expect(await body()).toBe("exposed");
    await aSecond();
    await map();
    expect(await body()).toBe("exposed");
  },
);
