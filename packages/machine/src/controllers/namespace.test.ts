import { isNotFound, resources } from "@spry/kube";
import { expect, test } from "vitest";
import { eventually } from "../testing.ts";
import { startCluster } from "./testing.ts";

test("a Namespace has a ServiceAccount and the root certificate, and goes with all that is in it", async () => {
  const client = await startCluster({ rootCa: "PEM" });
  const name = "team";
  await client.create(resources.namespaces, { metadata: { name } });
  await eventually(async () => {
    await client.get(resources.serviceAccounts, { namespace: name, name: "default" });
    const ca = await client.get(resources.configMaps, {
      namespace: name,
      name: "kube-root-ca.crt",
    });
    expect(ca.data).toEqual({ "ca.crt": "PEM" });
  });
  await client.create(resources.secrets, { metadata: { namespace: name, name: "s" } });
  await client.delete(resources.namespaces, { name });
  await eventually(async () =>
    expect(client.get(resources.namespaces, { name })).rejects.toSatisfy(isNotFound),
  );
  expect((await client.list(resources.secrets, { namespace: name })).items).toEqual([]);
});
