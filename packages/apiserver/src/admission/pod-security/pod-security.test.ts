import { KubeClient, resources, transportOrigin } from "@spry/kube";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "../../index.ts";

let server: ApiServer;
let client: KubeClient;

beforeEach(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(server.transport());
});
afterEach(() => server.close());

const namespace = "default";
const label = (labels: Record<string, string>) =>
  client.patch(
    resources.namespaces,
    { name: namespace },
    {
      metadata: {
        labels: Object.fromEntries(
          Object.entries(labels).map(([key, value]) => [
            `pod-security.kubernetes.io/${key}`,
            value,
          ]),
        ),
      },
    },
  );
const create = (spec: object) =>
  client.create(resources.pods, {
    metadata: { namespace, generateName: "p-" },
    spec: { automountServiceAccountToken: false, containers: [{ name: "a", image: "i" }], ...spec },
  });

const compliant = {
  securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
  containers: [
    {
      name: "a",
      image: "i",
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    },
  ],
};

test.each([
  ["privileged", { hostPID: true }, undefined],
  ["baseline", {}, undefined],
  [
    "baseline",
    { hostPID: true },
    'violates PodSecurity "baseline:latest": host namespaces (hostPID=true)',
  ],
  ["restricted", compliant, undefined],
  [
    "restricted",
    {},
    'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  ],
])("a namespace that enforces %s takes %j or says why not", async (level, spec, problem) => {
  await label({ enforce: level });
  if (problem === undefined) expect((await create(spec)).metadata.name).toBeDefined();
  else await expect(create(spec)).rejects.toThrow(`is forbidden: ${problem}`);
});

test("who labels a namespace hears of Pods that it would refuse", async () => {
  await create({});
  const response = await server.transport()(
    new Request(`${transportOrigin}/api/v1/namespaces/${namespace}`, {
      method: "PATCH",
      headers: { "content-type": "application/merge-patch+json" },
      body: JSON.stringify({
        metadata: { labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
      }),
    }),
  );
  expect(response.headers.get("warning")).toContain(
    String.raw`existing pods in namespace \"default\" violate the new PodSecurity enforce level \"restricted:latest\"`,
  );
});
