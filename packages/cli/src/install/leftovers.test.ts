/** What is left of an installation after its values have changed, on a real API server. */
import { createApiServer } from "@spry/apiserver";
import { KubeClient, type Resource, resources, type Transport } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { administrationService, apiServices } from "./administration.ts";
import { leftovers } from "./leftovers.ts";
import { platformObjects } from "./objects.ts";
import { defaultValues, type InstallValues } from "./values.ts";

const fieldManager = "spry-install";

test("the events' part of another namespace goes with them, and no object of another owner there", async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  onTestFinished(() => api.close());
  const transport = withStatefulSets(api.transport());
  const client = new KubeClient(transport, { fieldManager });
  for (const name of ["kube-system", defaultValues.namespace])
    await client.apply(resources.namespaces, { metadata: { name } });
  await client.apply(resources.customResourceDefinitions, definitionOf(apiServices));
  const values = (enabled: boolean): InstallValues => ({
    ...defaultValues,
    eventing: { ...defaultValues.eventing, enabled },
  });
  const bindings = platformObjects(values(true)).filter(({ kind: of }) => of === "RoleBinding");
  for (const binding of bindings) await client.apply(bindingsOf, binding, { force: true });
  const [mine] = bindings;
  const theirs = { ...mine!, metadata: { ...mine!.metadata, namespace: "kube-system" } };
  await new KubeClient(transport, { fieldManager: "theirs" }).apply(bindingsOf, {
    ...theirs,
    metadata: { ...theirs.metadata, name: "theirs" },
  });

  const left = async (enabled: boolean) =>
    (await leftovers(client, values(enabled), fieldManager))
      .filter(({ resource }) => resource.kind === "RoleBinding")
      .map(({ namespace, name }) => `${namespace}/${name}`);
  expect(await left(true)).toEqual([]);
  expect(await left(false)).toContain(`kube-system/${administrationService}`);
  expect(await left(false)).not.toContain("kube-system/theirs");
});

/** The embedded engine does not serve them: there are none. */
function withStatefulSets(transport: Transport): Transport {
  return async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname.endsWith("/statefulsets"))
      return Response.json({
        kind: "StatefulSetList",
        apiVersion: "apps/v1",
        metadata: {},
        items: [],
      });
    const response = await transport(request);
    if (pathname !== "/apis/apps/v1") return response;
    const known = (await response.json()) as { resources: object[] };
    const added = {
      name: "statefulsets",
      singularName: "statefulset",
      namespaced: true,
      kind: "StatefulSet",
      verbs: ["list"],
    };
    return Response.json({ ...known, resources: [...known.resources, added] });
  };
}

const definitionOf = ({ group, version, kind, plural, namespaced }: Resource) => ({
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: namespaced ? ("Namespaced" as const) : ("Cluster" as const),
    names: { plural, singular: kind.toLowerCase(), kind },
    versions: [
      {
        name: version,
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object" as const } },
      },
    ],
  },
});

const bindingsOf = {
  group: "rbac.authorization.k8s.io",
  version: "v1",
  kind: "RoleBinding",
  plural: "rolebindings",
  namespaced: true,
};
