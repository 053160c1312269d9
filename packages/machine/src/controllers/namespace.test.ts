import { type Condition, isNotFound, resources } from "@spry/kube";
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

test("a Namespace whose content has finalizers says what is left, in Kubernetes' words, until it goes", async () => {
  const client = await startCluster();
  const name = "stuck";
  await client.create(resources.namespaces, { metadata: { name } });
  const finalizers = ["example.com/hold"];
  for (const each of ["a", "b"])
    await client.create(resources.configMaps, {
      metadata: { namespace: name, name: each, finalizers },
    });
  await client.delete(resources.namespaces, { name });
  const conditions = async () => {
    const { status } = await client.get(resources.namespaces, { name });
    const all = (status?.conditions ?? []) as Condition[];
    return Object.fromEntries(all.map((each) => [each.type, `${each.status} ${each.message}`]));
  };
  await eventually(async () =>
    expect(await conditions()).toEqual({
      NamespaceDeletionDiscoveryFailure: "False All resources successfully discovered",
      NamespaceDeletionGroupVersionParsingFailure:
        "False All legacy kube types successfully parsed",
      NamespaceDeletionContentFailure:
        "False All content successfully deleted, may be waiting on finalization",
      NamespaceContentRemaining:
        "True Some resources are remaining: configmaps. has 2 resource instances",
      NamespaceFinalizersRemaining:
        "True Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances",
    }),
  );
  const free = (each: string) =>
    client.patch(
      resources.configMaps,
      { namespace: name, name: each },
      { metadata: { finalizers: null } },
    );
  await free("a");
  await eventually(async () =>
    expect((await conditions())["NamespaceFinalizersRemaining"]).toMatch(/in 1 resource/),
  );
  await free("b");
  await eventually(async () =>
    expect(client.get(resources.namespaces, { name })).rejects.toSatisfy(isNotFound),
  );
});
