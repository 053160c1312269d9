/** The administration behind an API server that has authenticated the person: nothing stands for ours, and the API server is the embedded one. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request as httpsRequest, type Server } from "node:https";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { type ApiServer, createApiServer } from "@spry/apiserver";
import { KubeClient, type Resource, resources, type UnknownObject } from "@spry/kube";
import { openSqliteQueue } from "@spry/queue";
import { certificateFor, type KeyPair } from "@spry/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Eventing, startEventing } from "../start.ts";
import { type FrontProxy, frontProxyIn } from "./front-proxy.ts";

const base = "/apis/eventing.spry.io/v1";
const directory = mkdtempSync(path.join(tmpdir(), "aggregated-"));
let api: ApiServer;
let client: KubeClient;
let eventing: Eventing;
let server: Server;
let serverPair: KeyPair;
let proxy: FrontProxy | undefined;

const kind = (group: string, name: string, plural: string): Resource<UnknownObject> => ({
  group,
  version: "v1",
  kind: name,
  plural,
  namespaced: false,
});
const apiServices = kind("apiregistration.k8s.io", "APIService", "apiservices");
const clusterRoles = kind("rbac.authorization.k8s.io", "ClusterRole", "clusterroles");
const bindings = kind("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings");

beforeAll(async () => {
  const [frontProxy, pair] = await Promise.all([
    certificateFor("front-proxy-client"),
    certificateFor("administration.default.svc"),
  ]);
  serverPair = pair;
  const { crt: ca, key } = frontProxy;
  api = await createApiServer({ dataDir: ":memory:", frontProxy: { ca, cert: ca, key } });
  client = new KubeClient(api.transport());
  eventing = startEventing({
    client,
    openQueue: () => openSqliteQueue({ directory }),
    allowPrivate: true,
    frontProxy: () => proxy,
  });
  server = createServer(
    { cert: pair.crt, key: pair.key, ca, requestCert: true, rejectUnauthorized: false },
    eventing.admin,
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  await register();
  const map = { namespace: "kube-system", name: "extension-apiserver-authentication" };
  proxy = frontProxyIn((await client.get(resources.configMaps, map)).data);
});
afterAll(async () => {
  server.close();
  server.closeAllConnections();
  await eventing.close();
  await api.close();
  rmSync(directory, { recursive: true, force: true });
});

async function register(): Promise<void> {
  const metadata = { namespace: "default", name: "administration" };
  const { port } = server.address() as AddressInfo;
  const ports = [{ name: "https", port: 443 }];
  await client.create(resources.services, { metadata, spec: { ports } });
  await client.create(resources.endpointSlices, {
    metadata: { ...metadata, labels: { "kubernetes.io/service-name": metadata.name } },
    addressType: "IPv4",
    endpoints: [{ addresses: ["127.0.0.1"], conditions: { ready: true } }],
    ports: [{ name: "https", port, protocol: "TCP" }],
  });
  await client.create(apiServices, {
    metadata: { name: "v1.eventing.spry.io" },
    spec: {
      group: "eventing.spry.io",
      version: "v1",
      groupPriorityMinimum: 100,
      versionPriority: 100,
      service: { ...metadata, port: 443 },
      caBundle: Buffer.from(serverPair.crt).toString("base64"),
    },
  });
  const rules = (group: string, verbs: string[]) => ({
    apiGroups: [group],
    resources: ["events", "subscriptions"],
    verbs,
  });
  await grant("boss", [
    rules("eventing.spry.io", ["*"]),
    rules("eventing.kyma-project.io", ["*"]),
    { nonResourceURLs: ["*"], verbs: ["get"] },
  ]);
  // Reaches the administration, and has no rights to what it administers.
  await grant("stranger", [rules("eventing.spry.io", ["*"])]);
}

async function grant(name: string, rules: object[]): Promise<void> {
  await client.create(clusterRoles, { metadata: { name }, rules });
  const apiGroup = "rbac.authorization.k8s.io";
  await client.create(bindings, {
    metadata: { name },
    roleRef: { apiGroup, kind: "ClusterRole", name },
    subjects: [{ kind: "User", apiGroup, name }],
  });
}

async function ask(name: string, method: string, path: string, body?: object) {
  const transport = api.transport({ name, groups: ["system:authenticated"] });
  const response = await transport(
    new Request(`http://kubernetes${base}${path}`, {
      method,
      ...(body && {
        body: JSON.stringify(body),
        headers: { "content-type": "application/json" },
      }),
    }),
  );
  return { status: response.status, text: await response.text() };
}

const event = { specversion: "1.0", id: "one", source: "shop", type: "order.created.v1", data: {} };

test("the API is available", async () => {
  await expect.poll(() => eventing.queue() !== undefined, { timeout: 20_000 }).toBe(true);
  const available = async () =>
    JSON.stringify(await client.get(apiServices, { name: "v1.eventing.spry.io" }));
  await expect.poll(available, { timeout: 20_000 }).toContain("all checks passed");
});

test("a person with the rights publishes and reads events through the API server", async () => {
  expect(await ask("boss", "POST", "/events", event)).toEqual({ status: 204, text: "" });
  const { text } = await ask("boss", "GET", "/events?after=0");
  expect(JSON.parse(text)).toMatchObject({ items: [{ event: { id: "one", data: {} } }] });
});

test("what is not an event is refused, and says why", async () => {
  const { status, text } = await ask("boss", "POST", "/events", { id: "two" });
  expect({ status, kind: (JSON.parse(text) as { kind: string }).kind }).toEqual({
    status: 400,
    kind: "Status",
  });
  expect(text).toContain("specversion");
});

test("the rights on events decide, not those on the API alone", async () => {
  const { status, text } = await ask("stranger", "GET", "/events");
  expect(status).toBe(403);
  expect(text).toContain("stranger may not list events in the cluster");
  expect((await ask("stranger", "POST", "/events", event)).status).toBe(403);
});

test("a client that names a user itself is not believed", async () => {
  const { port } = server.address() as AddressInfo;
  const status = await new Promise((resolve, reject) => {
    const sent = httpsRequest(
      {
        port,
        path: `${base}/events`,
        rejectUnauthorized: false,
        cert: serverPair.crt,
        key: serverPair.key,
        headers: { "x-remote-user": "boss", authorization: "Bearer any" },
      },
      (response) => resolve(response.resume().statusCode),
    );
    sent.on("error", reject).end();
  });
  expect(status).toBe(401);
});
