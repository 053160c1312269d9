/** Other API servers behind this one: a real TLS server with a certificate of its own, registered as a user registers it. */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { createServer, request, type Server } from "node:https";
import { type AddressInfo } from "node:net";
import { type Duplex } from "node:stream";
import { type TLSSocket } from "node:tls";
import { KubeClient, resources, type Resource, type UnknownObject } from "@spry/kube";
import { afterAll, beforeAll, expect, test } from "vitest";
import { certificateFor, type KeyPair } from "../../../../test/kit/index.ts";
import { type ApiServer, createApiServer } from "../index.ts";
import { type ApiService } from "../kinds/api-service/api-service.ts";

const apiServices: Resource<ApiService> = {
  group: "apiregistration.k8s.io",
  version: "v1",
  kind: "APIService",
  plural: "apiservices",
  namespaced: false,
};
const group = "things.example.com";
const base = `/apis/${group}/v1`;
const list = {
  kind: "APIResourceList",
  groupVersion: `${group}/v1`,
  resources: [
    { name: "things", singularName: "thing", namespaced: true, kind: "Thing", verbs: ["get"] },
    { name: "things/status", singularName: "", namespaced: true, kind: "Thing", verbs: ["get"] },
  ],
};

const openApiIndex = {
  paths: {
    [base.slice(1)]: { serverRelativeURL: `/openapi/v3${base}?hash=AB12` },
    "apis/other.example.com/v1": { serverRelativeURL: "/openapi/v3/apis/other.example.com/v1" },
  },
};
const openApi = { openapi: "3.0.0", components: { schemas: { "com.example.Thing": {} } } };

let api: ApiServer;
let port: number;
let backend: Server;
let frontProxy: KeyPair;
let serverPair: KeyPair;
let tenantToken: string;
let adminToken: string;
let client: KubeClient;
/** What the backend was last asked with. */
let seen: { headers: IncomingHttpHeaders; url: string; certificate: string };

beforeAll(async () => {
  [frontProxy, serverPair] = await Promise.all([
    certificateFor("front-proxy-client"),
    certificateFor("things.default.svc"),
  ]);
  const { crt: ca, key } = frontProxy;
  api = await createApiServer({ dataDir: ":memory:", frontProxy: { ca, cert: ca, key } });
  const own = await certificateFor("127.0.0.1");
  ({ port } = await api.listen({
    host: "127.0.0.1",
    port: 0,
    cert: own.crt,
    key: own.key,
    clientCa: own.crt,
  }));
  client = new KubeClient(api.transport());
  backend = createServer(
    { cert: serverPair.crt, key: serverPair.key, ca, requestCert: true, rejectUnauthorized: true },
    (incoming, outgoing) => {
      const socket = incoming.socket as TLSSocket;
      const certificate = socket.getPeerCertificate().fingerprint256;
      seen = { headers: incoming.headers, url: incoming.url ?? "", certificate };
      const path = new URL(incoming.url ?? "", "https://x").pathname;
      if (/^\/apis\/[^/]+\/v1$/.test(path)) return outgoing.end(JSON.stringify(list));
      if (path === "/openapi/v3") return outgoing.end(JSON.stringify(openApiIndex));
      if (path === `/openapi/v3${base}`) return outgoing.end(JSON.stringify(openApi));
      if (path.endsWith("/redirected")) return outgoing.writeHead(302, { location: "/" }).end();
      if (path.endsWith("/unchanged")) return outgoing.writeHead(304, { etag: '"1"' }).end();
      if (path.endsWith("/several")) return outgoing.writeHead(300).end("{}");
      if (path.endsWith("/echo")) return void incoming.pipe(outgoing);
      if (path.endsWith("/watched")) return void outgoing.writeHead(200).write("first\n");
      if (path.endsWith("/cut")) return incoming.socket.destroy();
      outgoing.end(JSON.stringify({ kind: "Thing", metadata: { name: "one" } }));
    },
  );
  backend.on("upgrade", (_: IncomingMessage, socket: Duplex) => {
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: words\r\n\r\n",
    );
    socket.pipe(socket);
  });
  backend.listen(0, "127.0.0.1");
  await once(backend, "listening");
  await service("things");
  await slice("things", (backend.address() as AddressInfo).port);
  [tenantToken, adminToken] = await Promise.all([token("tenant"), token("boss")]);
  await bind("boss", "cluster-admin");
  await bind("tenant", "edit", "default");
  await client.create(apiServices, apiService("v1", group));
});
afterAll(async () => {
  await api.close();
  backend.closeAllConnections();
  backend.close();
});

const apiService = (version: string, of: string, spec: Partial<ApiService["spec"]> = {}) =>
  ({
    metadata: { name: `${version}.${of}` },
    spec: {
      group: of,
      version,
      groupPriorityMinimum: 100,
      versionPriority: 100,
      service: { namespace: "default", name: "things" },
      caBundle: Buffer.from(serverPair.crt).toString("base64"),
      ...spec,
    },
  }) as ApiService;

async function service(name: string): Promise<void> {
  const spec = { ports: [{ name: "https", port: 443 }] };
  await client.create(resources.services, { metadata: { namespace: "default", name }, spec });
}

async function slice(name: string, at: number): Promise<void> {
  await client.create(resources.endpointSlices, {
    metadata: { namespace: "default", name, labels: { "kubernetes.io/service-name": name } },
    addressType: "IPv4",
    endpoints: [{ addresses: ["127.0.0.1"], conditions: { ready: true } }],
    ports: [{ name: "https", port: at }],
  });
}

async function token(name: string): Promise<string> {
  const headers = { "content-type": "application/json" };
  const send = async (path: string, body: object) => {
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const response = await api.transport()(new Request(`http://kubernetes.internal${path}`, init));
    return (await response.json()) as UnknownObject;
  };
  const accounts = "/api/v1/namespaces/default/serviceaccounts";
  await send(accounts, { metadata: { name } });
  const { status } = await send(`${accounts}/${name}/token`, { spec: {} });
  return (status as { token: string }).token;
}

async function bind(account: string, role: string, namespace?: string): Promise<void> {
  const kind = namespace ? "RoleBinding" : "ClusterRoleBinding";
  const plural = namespace ? "rolebindings" : "clusterrolebindings";
  const at = { group: "rbac.authorization.k8s.io", version: "v1", kind, plural };
  await client.create(
    { ...at, namespaced: Boolean(namespace) },
    {
      metadata: { name: `${account}-${role}`, ...(namespace && { namespace }) },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
      subjects: [{ kind: "ServiceAccount", namespace: "default", name: account }],
    },
  );
}

interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: Buffer;
  as?: string;
}

function start(path: string, { method = "GET", headers = {}, as = adminToken }: Sent = {}) {
  const authorization = `Bearer ${as}`;
  return request({
    host: "127.0.0.1",
    port,
    path,
    method,
    rejectUnauthorized: false,
    agent: false,
    headers: { ...headers, authorization },
  });
}

async function ask(path: string, sent: Sent = {}) {
  const outgoing = start(path, sent);
  outgoing.end(sent.body);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  return { status: response.statusCode, text, headers: response.headers };
}

const condition = async (name: string) =>
  (await client.get(apiServices, { name })).status?.conditions?.[0];
const patience = { timeout: 20_000, interval: 20 };
const available = (name: string) =>
  expect.poll(() => condition(name), patience).toMatchObject({ status: "True", reason: "Passed" });

test("its OpenAPI is in the index with the server's hash, and is asked of the server as the user", async () => {
  await available(`v1.${group}`);
  const index = JSON.parse((await ask("/openapi/v3")).text) as typeof openApiIndex;
  const key = base.slice(1);
  expect(index.paths[key]).toEqual({ serverRelativeURL: `/openapi/v3/${key}?hash=AB12` });
  expect(index.paths["apis/apps/v1"]).toBeDefined();
  // What it says of others' groups is not its to say.
  expect(index.paths["apis/other.example.com/v1"]).toBeUndefined();
  const { status, text } = await ask(index.paths[key]?.serverRelativeURL ?? "", {
    as: tenantToken,
  });
  expect([status, JSON.parse(text)]).toEqual([200, openApi]);
  expect(seen.headers["x-remote-user"]).toBe("system:serviceaccount:default:tenant");
  expect((await ask("/openapi/v3/apis/other.example.com/v1")).status).toBe(404);
});

test("a request reaches the server with the user's name, and nothing a client could forge", async () => {
  await available(`v1.${group}`);
  const { status, text, headers } = await ask(`${base}/namespaces/default/things/one?watch=0`, {
    headers: {
      "x-remote-user": "system:admin",
      x_remote_group: "system:masters",
      "x-remote-extra-scopes": "all",
      "impersonate-user": "jane",
      "impersonate-group": "system:masters",
      "impersonate-extra-example.com%2fteam": "blue",
      cookie: "a=b",
    },
  });
  expect({ status, name: (JSON.parse(text) as UnknownObject).metadata.name }).toEqual({
    status: 200,
    name: "one",
  });
  expect(headers["x-content-type-options"]).toBe("nosniff");
  expect(seen.url).toBe(`${base}/namespaces/default/things/one?watch=0`);
  expect(seen.certificate).toBe(new X509Certificate(frontProxy.crt).fingerprint256);
  expect(seen.headers.host).toBe("things.default.svc:443");
  const own = Object.entries(seen.headers).filter(([name]) =>
    /remote|impersonate|auth|cookie/.test(name),
  );
  expect(Object.fromEntries(own)).toEqual({
    "x-remote-user": "jane",
    "x-remote-group": "system:masters, system:authenticated",
    "x-remote-extra-example.com%2fteam": "blue",
  });
});

test("callers in this process reach it, too", async () => {
  const url = `http://kubernetes.internal${base}/namespaces/default/things/one`;
  const response = await api.transport({ name: "hpa", groups: ["system:masters"] })(
    new Request(url),
  );
  expect(await response.json()).toMatchObject({ kind: "Thing" });
  expect(seen.headers["x-remote-user"]).toBe("hpa");
});

test("rights are checked here first", async () => {
  const { status } = await ask(`${base}/namespaces/default/things/one`, { as: tenantToken });
  expect(status).toBe(403);
  const denied = await ask("/apis/apiregistration.k8s.io/v1/apiservices", {
    method: "POST",
    as: tenantToken,
    headers: { "content-type": "application/json" },
    body: Buffer.from(JSON.stringify(apiService("v1", "other.example.com"))),
  });
  expect(denied.status).toBe(403);
});

test.each(["one%2Fstatus", "..%2f..%2fsecrets", "one%5Cstatus", "/one"])(
  "a path that the server could divide differently is refused: %s",
  async (name) => {
    const { status, text } = await ask(`${base}/namespaces/default/things/${name}`);
    expect({ status, text }).toMatchObject({
      status: 400,
      text: expect.stringContaining("no encoded and no empty parts"),
    });
  },
);

test("large bodies and watches pass through as they come, and upgrades change the protocol", async () => {
  const body = Buffer.alloc(8 * 1024 * 1024, "a");
  const { text } = await ask(`${base}/namespaces/default/things/echo`, { method: "POST", body });
  expect(text.length).toBe(body.length);

  const watching = start(`${base}/namespaces/default/things/watched?watch=1`);
  watching.end();
  const [response] = (await once(watching, "response")) as [IncomingMessage];
  const [first] = (await once(response, "data")) as [Buffer];
  expect(first.toString()).toBe("first\n");
  watching.destroy();

  const upgrading = start(`${base}/namespaces/default/things/one/words`, {
    headers: { connection: "upgrade", upgrade: "words" },
  });
  upgrading.end();
  const [, socket] = (await once(upgrading, "upgrade")) as [IncomingMessage, Duplex];
  socket.write("hello");
  expect(String((await once(socket, "data"))[0])).toBe("hello");
  socket.destroy();
});

test("discovery lists the group like one of this server's own", async () => {
  const groups = JSON.parse((await ask("/apis")).text) as { groups: { name: string }[] };
  expect(groups.groups.map(({ name }) => name)).toContain(group);
  expect(JSON.parse((await ask(`/apis/${group}`)).text)).toMatchObject({
    preferredVersion: { groupVersion: `${group}/v1` },
  });
  expect(JSON.parse((await ask(base)).text)).toEqual(list);
  const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  const whole = JSON.parse((await ask("/apis", { headers: { accept } })).text) as {
    items: { metadata: { name: string }; versions: object[] }[];
  };
  expect(whole.items.find(({ metadata }) => metadata.name === group)?.versions).toEqual([
    {
      version: "v1",
      freshness: "Current",
      resources: [
        {
          resource: "things",
          responseKind: { group, version: "v1", kind: "Thing" },
          scope: "Namespaced",
          singularResource: "thing",
          verbs: ["get"],
          subresources: [
            {
              subresource: "status",
              responseKind: { group, version: "v1", kind: "Thing" },
              verbs: ["get"],
            },
          ],
        },
      ],
    },
  ]);
});

test("what cannot be reached is 503 with its reason, and disturbs no other", async () => {
  const bare = apiService("v1", "bare.example.com", {
    service: { namespace: "default", name: "absent" },
  });
  await client.create(apiServices, bare);
  const reason = (name: string) => async () => (await condition(name))?.reason;
  await expect.poll(reason("v1.bare.example.com"), patience).toBe("ServiceNotFound");
  const { status, text } = await ask("/apis/bare.example.com/v1/namespaces/default/x");
  expect({ status, ...(JSON.parse(text) as object) }).toMatchObject({
    status: "Failure",
    code: 503,
    reason: "ServiceUnavailable",
    message:
      'the server is currently unable to handle the request: APIService v1.bare.example.com: ServiceNotFound: service/absent in "default" is not present',
  });
  await service("absent");
  await expect.poll(reason("v1.bare.example.com"), patience).toBe("EndpointsNotFound");
  const { port: closed } = await closedPort();
  await slice("absent", closed);
  await expect.poll(reason("v1.bare.example.com"), patience).toBe("FailedDiscoveryCheck");
  expect((await condition("v1.bare.example.com"))?.message).toContain("connection refused");

  expect((await ask(`${base}/namespaces/default/things/cut`)).status).toBe(503);
  const things = `${base}/namespaces/default/things`;
  // As kube-aggregator does it: what has no Location redirects no one.
  for (const [name, status] of [
    ["redirected", 502],
    ["unchanged", 304],
    ["several", 300],
  ] as const) {
    expect([name, (await ask(`${things}/${name}`)).status]).toEqual([name, status]);
    const inProcess = await api.transport()(new Request(`https://kubernetes${things}/${name}`));
    expect([name, inProcess.status]).toEqual([name, status]);
  }
  expect((await ask(`${base}/namespaces/default/things/one`)).status).toBe(200);
});

test("a certificate of another authority is refused, unless the APIService says so", async () => {
  const other = await certificateFor("things.default.svc");
  const caBundle = Buffer.from(other.crt).toString("base64");
  const name = "v1.strict.example.com";
  await client.create(apiServices, apiService("v1", "strict.example.com", { caBundle }));
  await expect
    .poll(() => condition(name), patience)
    .toMatchObject({ status: "False", reason: "FailedDiscoveryCheck" });
  expect((await condition(name))?.message).toMatch(/x509|certificate/);
  await client.patch(
    apiServices,
    { name },
    { spec: { caBundle: null, insecureSkipTLSVerify: true } },
  );
  // It serves another group's list, which is a server's own affair.
  await available(name);
});

test("the server's own groups have APIServices, custom ones come and go with their definitions", async () => {
  const { items } = await client.list(apiServices, {});
  const local = items.find(({ metadata }) => metadata.name === "v1.apps");
  expect(local).toMatchObject({
    metadata: { labels: { "kube-aggregator.kubernetes.io/automanaged": "onstart" } },
    spec: { group: "apps", version: "v1", groupPriorityMinimum: 17_800, versionPriority: 15 },
    status: { conditions: [{ type: "Available", status: "True", reason: "Local" }] },
  });
  const legacy = items.find(({ metadata }) => metadata.name === "v1.");
  expect(legacy?.spec).toEqual({
    version: "v1",
    groupPriorityMinimum: 18_000,
    versionPriority: 1,
  });
  const definition = {
    metadata: { name: "cats.example.com" },
    spec: {
      group: "example.com",
      scope: "Cluster",
      names: { plural: "cats", kind: "Cat" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object" } },
        },
      ],
    },
  };
  await client.create(resources.customResourceDefinitions, definition);
  await expect
    .poll(() => condition("v1.example.com").catch(() => undefined), patience)
    .toMatchObject({ status: "True" });
  await client.delete(resources.customResourceDefinitions, { name: "cats.example.com" });
  await expect
    .poll(() => condition("v1.example.com").catch(({ code }) => code as number), patience)
    .toBe(404);
});

test("an APIService that cannot work is refused", async () => {
  const refused = (object: ApiService) =>
    client.create(apiServices, object).then(
      () => "",
      ({ message }: Error) => message,
    );
  expect(await refused(apiService("v1", "apps", {}))).toContain(
    "spec.service: Forbidden: this group and version is served by Spry itself",
  );
  const misnamed = apiService("v1", "a.example.com");
  misnamed.metadata.name = "v2.a.example.com";
  expect(await refused(misnamed)).toContain("must be `spec.version+");
  expect(
    await refused(apiService("v1", "b.example.com", { insecureSkipTLSVerify: true })),
  ).toContain("may not be true if caBundle is present");
  const bundle = { caBundle: Buffer.from("no PEM").toString("base64") };
  expect(await refused(apiService("v1", "c.example.com", bundle))).toContain("spec.caBundle");
});

test("servers find in a ConfigMap whom to trust", async () => {
  const where = { namespace: "kube-system", name: "extension-apiserver-authentication" };
  const { data } = await client.get(resources.configMaps, where);
  expect(data).toMatchObject({
    "requestheader-client-ca-file": frontProxy.crt,
    "requestheader-allowed-names": '["test"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
  });
  expect(data?.["client-ca-file"]).toContain("BEGIN CERTIFICATE");
});

/** A port on which nothing listens any more. */
async function closedPort(): Promise<{ port: number }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port: at } = server.address() as AddressInfo;
  server.close();
  return { port: at };
}
