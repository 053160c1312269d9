/** Who answers for the administration of events, on a real API server: its program, or the controller while there is none. */
import { createApiServer } from "@spry/apiserver";
import { administrationStandIn } from "@spry/eventing";
import { KubeClient, ManualClock, resources, silentLogger } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import {
  administrationName,
  administrationService,
  apiServices,
} from "../install/administration.ts";
import { keepAdministration } from "./administration-keeper.ts";

const namespace = "kyma-system";
const target = { name: administrationName };

async function started(service: string) {
  const api = await createApiServer({ dataDir: ":memory:" });
  const client = new KubeClient(api.transport(), { fieldManager: "test" });
  await client.apply(resources.namespaces, { metadata: { name: namespace } });
  await client.apply(apiServices, {
    metadata: target,
    spec: {
      group: "eventing.spry.io",
      version: "v1",
      groupPriorityMinimum: 100,
      versionPriority: 100,
      service: { name: service, namespace, port: 443 },
    },
  });
  const clock = new ManualClock(Date.now());
  const stop = new AbortController();
  const keeping = { client, namespace, log: silentLogger, signal: stop.signal, clock };
  const working = keepAdministration(keeping);
  onTestFinished(async () => {
    stop.abort();
    await working;
    await api.close();
  });
  const spec = async () => (await client.get(apiServices, target)).spec;
  const answered = async () => (await spec())?.service?.name;
  return {
    client,
    spec,
    /** By whom, so many seconds later. */
    after: async (seconds: number) => {
      for (let passed = 0; passed < seconds; passed += 10) {
        await clock.advance(10_000);
        // What is read and written is real.
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      return answered();
    },
    answered,
    serve: async (serving: boolean) => {
      const labels = { "kubernetes.io/service-name": administrationService };
      await client.apply(
        resources.endpointSlices,
        {
          metadata: { name: "slice", namespace, labels },
          addressType: "IPv4",
          endpoints: [{ addresses: ["10.0.0.1"], conditions: { ready: true, serving } }],
          ports: [{ name: "https", port: 8443 }],
        },
        { force: true },
      );
    },
    say: async (status: "True" | "False") => {
      const lastTransitionTime = new Date(clock.now()).toISOString().replace(/\.\d+/, "");
      const condition = { type: "Available", status, lastTransitionTime, reason: "r", message: "" };
      const conditions = { status: { conditions: [condition] } };
      await client.patch(apiServices, target, conditions, { subresource: "status" });
    },
  };
}

test("the controller answers while no Pod of the program does, and the program again as soon as one is ready", async () => {
  const { after, answered, say, serve, spec } = await started(administrationService);
  await expect.poll(async () => (await spec())?.caBundle).toBeTruthy();
  const own = (await spec())?.caBundle;
  await serve(false);
  await say("False");
  expect(await after(10)).toBe(administrationService);
  await expect.poll(() => after(10)).toBe("serverless-webhook");
  expect((await spec())?.caBundle).not.toBe(own);
  await say("True");
  expect(await after(30)).toBe("serverless-webhook");
  await serve(true);
  await expect.poll(() => after(10)).toBe(administrationService);
  expect((await spec())?.caBundle).toBe(own);
  // A server that reaches it late, although it runs, is no reason.
  await say("False");
  expect(await after(60)).toBe(administrationService);
  expect(await answered()).toBe(administrationService);
});

test("an APIService that is another's stays as it is", async () => {
  const { after, say, spec } = await started("of-others");
  await say("False");
  expect(await after(60)).toBe("of-others");
  expect((await spec())?.caBundle).toBeUndefined();
});

test("in the program's place, discovery is answered, and everything else is refused with the reason", async () => {
  const ask = async (path: string, method = "GET") =>
    administrationStandIn.answers(new Request(`https://webhook${path}`, { method }));
  const discovery = await ask("/apis/eventing.spry.io/v1");
  expect(await discovery?.json()).toMatchObject({ kind: "APIResourceList", resources: [] });
  const refused = await ask("/apis/eventing.spry.io/v1/namespaces/a/subscriptions");
  expect(refused?.status).toBe(503);
  expect(await refused?.json()).toMatchObject({
    reason: "ServiceUnavailable",
    message: expect.stringContaining("serverless-eventing"),
  });
  expect(await ask("/apis/other.example/v1")).toBeUndefined();
  expect(await ask("/validate", "POST")).toBeUndefined();
});
