import { KubeClient, resources } from "@spry/kube";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "../../index.ts";

let server: ApiServer;
let client: KubeClient;

beforeEach(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(server.transport());
});
afterEach(() => server.close());

const service = (name: string, spec: object) =>
  client.create(resources.services, {
    metadata: { namespace: "default", name },
    spec: { ports: [{ port: 80 }], ...spec },
  });

test.each([
  ["10.96.0.1", "it is the address of the API server"],
  ["10.96.0.10", "it is the address of the name server"],
])("a Service that claims %s gets 422 with the reason", async (clusterIP, reason) => {
  const refusal = {
    code: 422,
    message: expect.stringContaining(`failed to allocate IP ${clusterIP}: ${reason}`),
  };
  await expect(service("claims", { clusterIP })).rejects.toMatchObject(refusal);
  await expect(service("lists", { clusterIP, clusterIPs: [clusterIP] })).rejects.toMatchObject(
    refusal,
  );
  // Nor by a change of its type.
  await service("changes", { type: "ExternalName", externalName: "example.com", ports: undefined });
  const place = { namespace: "default", name: "changes" };
  const spec = { type: "ClusterIP", externalName: null, clusterIP, ports: [{ port: 80 }] };
  await expect(client.patch(resources.services, place, { spec })).rejects.toMatchObject({
    code: 422,
  });
});

test("other addresses can be named", async () => {
  const { spec } = await service("named", { clusterIP: "10.96.0.2" });
  expect(spec?.clusterIP).toBe("10.96.0.2");
});
