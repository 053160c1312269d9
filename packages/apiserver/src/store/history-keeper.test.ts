import { KubeClient, ManualClock, resources } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { createApiServer } from "../api-server.ts";

const minute = 60_000;

test("changes can be read back for five minutes, as on a cluster", async () => {
  const clock = new ManualClock();
  const server = await createApiServer({ dataDir: ":memory:", clock });
  onTestFinished(() => server.close());
  const client = new KubeClient(server.transport());
  const metadata = { namespace: "default", name: "changing" };
  const at = async (resourceVersion = "") => {
    const query = `resourceVersion=${resourceVersion}&resourceVersionMatch=Exact`;
    const url = `http://x/api/v1/namespaces/default/configmaps?${query}`;
    const response = await server.transport()(new Request(url));
    const { items = [] } = (await response.json()) as { items?: { data: object }[] };
    return response.ok ? items.map(({ data }) => data) : response.status;
  };
  const first = await client.create(resources.configMaps, { metadata, data: { a: "first" } });
  const created = first.metadata.resourceVersion;
  await clock.advance(minute);
  const second = await client.patch(resources.configMaps, metadata, { data: { a: "second" } });
  const changed = second.metadata.resourceVersion;
  await clock.advance(5 * minute);
  expect(await at(created)).toEqual([{ a: "first" }]);
  await clock.advance(minute);
  expect(await at(created)).toBe(410);
  await clock.advance(60 * minute);
  expect(await at(changed)).toEqual([{ a: "second" }]);
});
