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

const metadata = { name: "a", namespace: "default" };
const scaleTargetRef = { apiVersion: "apps/v1", kind: "Deployment", name: "d" };
const create = (target: object, describedObject: object) =>
  client.create(resources.horizontalPodAutoscalers, {
    metadata,
    spec: {
      scaleTargetRef: target,
      maxReplicas: 3,
      metrics: [
        {
          type: "Object",
          object: {
            metric: { name: "requests" },
            describedObject,
            target: { type: "Value", value: "10" },
          },
        },
      ],
    },
  } as never);

test("a metric may describe an object of the core group, such as a Service", async () => {
  const describedObject = { apiVersion: "v1", kind: "Service", name: "s" };
  expect((await create(scaleTargetRef, describedObject)).spec).toMatchObject({
    metrics: [{ object: { describedObject } }],
  });
});

test("what is scaled is of another group, and versions have to be well-formed", async () => {
  const service = { apiVersion: "v1", kind: "Service", name: "s" };
  await expect(create(service, service)).rejects.toThrow(
    'spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group',
  );
  await expect(create(scaleTargetRef, { ...service, apiVersion: "a/b/c" })).rejects.toThrow(
    'spec.metrics[0].object.describedObject.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
  );
});
