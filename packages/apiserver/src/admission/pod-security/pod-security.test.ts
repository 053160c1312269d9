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

const host = "127.0.0.1";
const container = (fields: object) => ({ containers: [{ name: "a", image: "i", ...fields }] });
const beyondBaseline: [string, object][] = [
  ["the machine's network", { hostNetwork: true }],
  ["the machine's processes", { hostPID: true }],
  ["the machine's IPC", { hostIPC: true }],
  ["a port of the machine", container({ ports: [{ containerPort: 80, hostPort: 8080 }] })],
  ["a directory of the machine", { volumes: [{ name: "v", hostPath: { path: "/etc" } }] }],
  ["all privileges", container({ securityContext: { privileged: true } })],
  ["a capability", container({ securityContext: { capabilities: { add: ["NET_ADMIN"] } } })],
  ["no seccomp", { securityContext: { seccompProfile: { type: "Unconfined" } } }],
  ["no AppArmor", { securityContext: { appArmorProfile: { type: "Unconfined" } } }],
  ["a sysctl", { securityContext: { sysctls: [{ name: "kernel.msgmax", value: "1" }] } }],
  [
    "a probe of another host",
    container({ readinessProbe: { httpGet: { host, port: 80, path: "/" } } }),
  ],
  [
    "a startup probe of another host",
    container({ startupProbe: { tcpSocket: { host, port: 1 } } }),
  ],
  [
    "a hook that calls another host",
    container({ lifecycle: { postStart: { httpGet: { host, port: 80, path: "/" } } } }),
  ],
  [
    "a probe of another host in an init container",
    {
      initContainers: [
        {
          name: "b",
          image: "i",
          restartPolicy: "Always",
          livenessProbe: { tcpSocket: { host, port: 1 } },
        },
      ],
    },
  ],
];

test.each(beyondBaseline)("without a label, no Pod has %s", async (_, spec) => {
  await expect(create(spec)).rejects.toThrow('violates PodSecurity "baseline:latest": ');
});

test.each(beyondBaseline)("where a label permits it, a Pod has %s", async (_, spec) => {
  await label({ enforce: "privileged" });
  expect((await create(spec)).metadata.name).toBeDefined();
});

test("the platform's own namespaces are exempt, whatever their labels say", async () => {
  const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
  await client.create(resources.namespaces, { metadata: { name: "kyma-system", labels } });
  const account = { namespace: "kyma-system", name: "default" };
  await client.create(resources.serviceAccounts, { metadata: account });
  for (const own of ["kyma-system", "kube-system"]) {
    const metadata = { namespace: own, name: "agent" };
    const spec = {
      automountServiceAccountToken: false,
      hostNetwork: true,
      containers: [{ name: "a", image: "i" }],
    };
    expect((await client.create(resources.pods, { metadata, spec })).metadata.name).toBe("agent");
  }
});

test("an administrator chooses the level of namespaces without a label", async () => {
  const serverWith = async (podSecurity: "privileged" | "restricted") => {
    await server.close();
    server = await createApiServer({ dataDir: ":memory:", podSecurity });
    client = new KubeClient(server.transport());
  };
  await serverWith("privileged");
  expect((await create({ hostNetwork: true })).metadata.name).toBeDefined();
  await serverWith("restricted");
  await expect(create({})).rejects.toThrow('violates PodSecurity "restricted:latest"');
  expect((await create(compliant)).metadata.name).toBeDefined();
});

test("no label is written, and a label for another mode leaves the default", async () => {
  const { metadata } = await client.get(resources.namespaces, { name: namespace });
  expect(metadata.labels).toEqual({ "kubernetes.io/metadata.name": namespace });
  await label({ warn: "restricted", "audit-version": "v1.30" });
  await expect(create({ hostPID: true })).rejects.toThrow('PodSecurity "baseline:latest"');
});

test("who writes a template hears of Pods that will be refused", async () => {
  const post = async (path: string, body: object) => {
    const response = await server.transport()(
      new Request(`${transportOrigin}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    );
    return { status: response.status, warning: response.headers.get("warning") ?? "" };
  };
  const pod = { ...container({}), hostNetwork: true, restartPolicy: "Never" };
  const template = { metadata: { labels: { a: "b" } }, spec: pod };
  const apps = "/apis/apps/v1/namespaces/default";
  const batch = "/apis/batch/v1/namespaces/default";
  const selector = { matchLabels: { a: "b" } };
  const always = { ...template, spec: { ...pod, restartPolicy: "Always" } };
  const metadata = { name: "one" };
  const answers = await Promise.all([
    post(`${apps}/deployments`, { metadata, spec: { selector, template: always } }),
    post(`${apps}/replicasets`, { metadata, spec: { selector, template: always } }),
    post(`${batch}/jobs`, { metadata, spec: { template } }),
    post(`${batch}/cronjobs`, {
      metadata,
      spec: { schedule: "@daily", jobTemplate: { spec: { template } } },
    }),
  ]);
  const warning = String.raw`would violate PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)`;
  for (const each of answers)
    expect(each).toEqual({ status: 201, warning: expect.stringContaining(warning) });
});

test("a Pod from before a stricter level stays, with labels, but not with another image", async () => {
  await label({ enforce: "privileged" });
  const { metadata } = await create({ hostNetwork: true });
  const pod = { namespace, name: metadata.name ?? "" };
  await client.patch(
    resources.namespaces,
    { name: namespace },
    { metadata: { labels: { "pod-security.kubernetes.io/enforce": null } } },
  );
  await client.patch(resources.pods, pod, { metadata: { labels: { x: "y" } } });
  const image = { spec: { containers: [{ name: "a", image: "j" }] } };
  await expect(client.patch(resources.pods, pod, image)).rejects.toThrow(
    'violates PodSecurity "baseline:latest"',
  );
});
