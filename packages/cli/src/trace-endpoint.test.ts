/** Where traces are sent, by Serverless objects of several namespaces on a real API server. */
import { createApiServer } from "@spry/apiserver";
import { serverlessCrd, serverlesses } from "@spry/controller";
import { KubeClient, resources, silentLogger } from "@spry/kube";
import { expect, test } from "vitest";
import { watchTraceEndpoint } from "./trace-endpoint.ts";

test("only the object of the platform's own namespace says where traces go", async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  const client = new KubeClient(api.transport());
  await client.apply(resources.customResourceDefinitions, serverlessCrd());
  const serve = async (namespace: string) => {
    await client.apply(resources.namespaces, { metadata: { name: namespace } });
    const stored = await client.create(serverlesses, { metadata: { namespace, name: "default" } });
    const status = { served: "True" as const, tracingEndpoint: `http://${namespace}/v1/traces` };
    await client.update(serverlesses, { ...stored, status }, { subresource: "status" });
  };
  await serve("attacker");
  await serve("platform");
  const stop = new AbortController();
  const endpoint = watchTraceEndpoint(client, "platform", silentLogger, stop.signal);
  const none = watchTraceEndpoint(client, "empty", silentLogger, stop.signal);
  await expect.poll(endpoint).toBe("http://platform/v1/traces");
  expect(none()).toBeUndefined();
  stop.abort();
  await api.close();
});
