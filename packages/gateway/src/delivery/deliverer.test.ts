/** Which addresses are the cluster's own, on a real API server. */
import { createApiServer } from "@spry/apiserver";
import { KubeClient, resources } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { Deliverer } from "./deliverer.ts";
import { postOutside } from "./post-outside.ts";

test("a client's URL does not lead to Services and Pods whose addresses are public", async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  const stop = new AbortController();
  onTestFinished(() => {
    stop.abort();
    return api.close();
  });
  const client = new KubeClient(api.transport());
  await client.create(resources.namespaces, { metadata: { name: "bank" } });
  for (const [name, addressType, address] of [
    ["vault", "IPv4", "34.118.224.9"],
    ["vault-6", "IPv6", "2600:1900::9"],
  ] as const)
    await client.create(resources.endpointSlices, {
      metadata: { namespace: "bank", name, labels: { "kubernetes.io/service-name": "vault" } },
      addressType,
      endpoints: [{ addresses: [address] }],
      ports: [{ name: "http", port: 80, protocol: "TCP" }],
    });
  await client.create(resources.services, {
    metadata: { namespace: "bank", name: "vault" },
    spec: { ports: [{ port: 80 }] },
  });
  const { spec } = await client.get(resources.services, { namespace: "bank", name: "vault" });
  const deliverer = new Deliverer({ client, signal: stop.signal });
  await deliverer.ready;
  const addressProblem = (address: string) => deliverer.addressProblem(address);
  const own = ["34.118.224.9", "::ffff:34.118.224.9", "2600:1900::9", spec?.clusterIP ?? ""];
  expect(own.map((address) => addressProblem(address) !== undefined)).toEqual(own.map(() => true));
  expect(addressProblem("34.118.224.10")).toBeUndefined();

  const request = { headers: {}, body: Buffer.alloc(0), timeoutMs: 2_000, allowPrivate: false };
  for (const url of [
    "http://34.118.224.9/",
    "http://578215945/",
    "http://[::ffff:34.118.224.9]/",
    "http://[2600:1900:0::9]/",
  ])
    expect(await postOutside({ ...request, url, addressProblem })).toMatchObject({
      reason: "AddressRefused",
      message: expect.stringContaining("is of a Service or a Pod of this cluster"),
    });
});
