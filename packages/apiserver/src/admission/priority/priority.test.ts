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

const create = (namespace: string, priorityClassName: string) =>
  client.create(resources.pods, {
    metadata: { namespace, generateName: "p-" },
    spec: {
      automountServiceAccountToken: false,
      priorityClassName,
      containers: [{ name: "a", image: "i" }],
    },
  });
const classes = ["system-node-critical", "system-cluster-critical"];

test.each(classes)("%s is refused to Pods of tenants", async (name) => {
  await expect(create("default", name)).rejects.toMatchObject({
    code: 403,
    message: expect.stringContaining(
      `pods with priorityClassName ${name} are only permitted in the namespaces of the platform: kube-system, kyma-system`,
    ),
  });
  await expect(create("kube-public", name)).rejects.toMatchObject({ code: 403 });
});

test.each(classes)("Pods of the platform may have %s", async (name) => {
  const { spec } = await create("kube-system", name);
  expect(spec?.priority).toBeGreaterThanOrEqual(2_000_000_000);
});
