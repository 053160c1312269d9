/** Who may do what with the platform's credentials: each as its owner presents it, asked of a real API server. */
import { X509Certificate } from "node:crypto";
import { request } from "node:https";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type ApiServer, createApiServer } from "@spry/apiserver";
import { KubeClient, resources, type Transport } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Certificates, ensureCertificates, type KeyPair } from "./certificates.ts";
import {
  controllerIdentity,
  gatewayIdentity,
  type Identity,
  nodeIdentity,
  registryIdentity,
} from "./identities.ts";
import { applySystemObjects } from "./system-objects.ts";

let dir = "";
let api: ApiServer;
let port = 0;
let certificates: Certificates;
beforeAll(async () => {
  dir = mkdtempSync(path.join(tmpdir(), "identities-"));
  certificates = await ensureCertificates(dir);
  api = await createApiServer({ dataDir: ":memory:" });
  const { ca: clientCa, apiServer } = certificates;
  ({ port } = await api.listen({ host: "127.0.0.1", port: 0, ...apiServer, clientCa }));
  const client = new KubeClient(api.transport());
  await applySystemObjects(client);
  await client.apply(resources.namespaces, { metadata: { name: "shop" } });
});
afterAll(async () => {
  await api.close();
  rmSync(dir, { recursive: true });
});

/** The status of a request over TLS with a client's certificate, or the error of the connection. */
function ask(
  client: KeyPair | undefined,
  method: string,
  url: string,
  body = "",
): Promise<number | string> {
  return new Promise((resolve) => {
    const headers = body ? { "content-type": "application/json" } : {};
    const options = {
      host: "127.0.0.1",
      port,
      ca: certificates.ca,
      ...client,
      method,
      path: url,
      headers,
    };
    const call = request({ ...options, agent: false }, (response) => {
      response.resume();
      response.once("close", () => resolve(response.statusCode ?? 0));
    });
    call.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    call.end(body);
  });
}

async function statusOf(transport: Transport, method: string, url: string): Promise<number> {
  const body = method === "POST" || method === "PUT" ? { body: "{}" } : {};
  const headers = { "content-type": "application/json" };
  return (await transport(new Request(`https://api${url}`, { method, headers, ...body }))).status;
}

const secrets = "/api/v1/namespaces/shop/secrets";
const functions = "/apis/serverless.kyma-project.io/v1alpha2";
const roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

describe("the gateway's certificate", () => {
  test.each([
    ["GET", "/api/v1/services", 200],
    ["GET", "/apis/discovery.k8s.io/v1/endpointslices", 200],
    ["GET", `${functions}/functions`, 200],
    ["GET", "/api/v1/secrets", 403],
    ["GET", secrets, 403],
    ["GET", "/api/v1/namespaces/shop/pods/x/log", 403],
    ["GET", "/api/v1/configmaps", 403],
    ["GET", "/api/v1/nodes", 403],
    ["POST", `${functions}/namespaces/shop/functions`, 403],
    ["POST", "/api/v1/namespaces/shop/pods", 403],
    ["POST", "/api/v1/namespaces/shop/serviceaccounts/default/token", 403],
    ["DELETE", "/api/v1/namespaces/shop", 403],
    ["POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", 403],
    ["GET", "/snapshot", 403],
    ["GET", "/metrics", 403],
  ])("%s %s is %i", async (method, url, status) => {
    expect(await ask(certificates.gateway, method, url, method === "POST" ? "{}" : "")).toBe(
      status,
    );
  });

  test("is in no group of administrators, nor does its role name more than on a cluster", async () => {
    expect(gatewayIdentity.groups).toEqual(["spry:system"]);
    const rights = gatewayIdentity.rules.map(({ resources, verbs, resourceNames = [] }) =>
      [resources, verbs, resourceNames].map((each) => each.join(",")).join(" "),
    );
    expect(rights.map((each) => each.trim())).toEqual([
      "services list,watch",
      "endpointslices list,watch",
      "functions list,watch",
      "routes,revisions,domainmappings list,watch",
      // Who may call what is served on demand.
      "networkpolicies list,watch",
      "pods,namespaces list,watch",
      "apirules list,watch",
      "gateways list,watch",
      // Whose the definition of APIRules is, and of no other kind.
      "customresourcedefinitions get apirules.gateway.kyma-project.io",
      // The process accepts and delivers events, too.
      "customresourcedefinitions get subscriptions.eventing.kyma-project.io",
      "namespaces get,list,watch",
      "services list,watch",
      "endpointslices list,watch",
      "subscriptions list,watch",
      "events create,patch",
      // Where traces are sent, and whose schedule is run by hand.
      "serverlesses list,watch",
      "functions get",
      "tokenreviews create",
      "subjectaccessreviews create",
    ]);
  });
});

test.each(["webhook", "apiServer"] as const)(
  "the %s's certificate is a server's, and nobody's to ask with",
  async (name) => {
    expect(await ask(certificates[name], "GET", "/api/v1/namespaces")).toBe(401);
  },
);

test("the administrator's certificate may do everything, and none nothing", async () => {
  expect(await ask(certificates.admin, "GET", "/api/v1/secrets")).toBe(200);
  expect(await ask(undefined, "GET", "/api/v1/namespaces")).toBe(401);
});

describe("in process", () => {
  const pod = "/api/v1/namespaces/shop/pods";
  test.each<[string, Identity, string, string, number]>([
    ["controller", controllerIdentity, "GET", `${functions}/functions`, 200],
    ["controller", controllerIdentity, "GET", "/api/v1/secrets", 200],
    ["controller", controllerIdentity, "POST", pod, 403],
    ["controller", controllerIdentity, "POST", roles, 403],
    ["controller", controllerIdentity, "GET", roles, 403],
    ["controller", controllerIdentity, "DELETE", "/api/v1/namespaces/shop", 403],
    [
      "controller",
      controllerIdentity,
      "POST",
      "/api/v1/namespaces/shop/serviceaccounts/default/token",
      403,
    ],
    ["registry", registryIdentity, "GET", "/api/v1/pods", 200],
    ["registry", registryIdentity, "GET", "/api/v1/secrets", 403],
    ["registry", registryIdentity, "DELETE", pod, 403],
    ["node", nodeIdentity, "GET", "/api/v1/pods", 200],
    ["node", nodeIdentity, "GET", "/api/v1/secrets", 200],
    ["node", nodeIdentity, "GET", `${secrets}/absent`, 404],
    ["node", nodeIdentity, "PUT", `${secrets}/absent`, 403],
    ["node", nodeIdentity, "GET", "/apis/apps/v1/controllerrevisions", 200],
    ["node", nodeIdentity, "POST", pod, 403],
    ["node", nodeIdentity, "GET", `${functions}/functions`, 403],
    ["node", nodeIdentity, "POST", roles, 403],
    ["node", nodeIdentity, "DELETE", "/api/v1/namespaces/shop", 403],
  ])("the %s (%#): %3$s %4$s", async (_, { name, groups }, method, url, status) => {
    expect(await statusOf(api.transport({ name, groups }), method, url)).toBe(status);
  });
});

test("a certificate of an older version is replaced at the next start; the others' authority stays", async () => {
  const old = mkdtempSync(path.join(tmpdir(), "old-pki-"));
  const before = await ensureCertificates(old);
  // As the versions before had it: the gateway with an administrator's certificate.
  for (const kind of ["crt", "key"]) {
    const admin = kind === "crt" ? before.admin.cert : before.admin.key;
    writeFileSync(path.join(old, `gateway.${kind}`), admin);
  }
  const after = await ensureCertificates(old);
  expect(after.ca).toBe(before.ca);
  expect(after.gateway.cert).not.toBe(before.admin.cert);
  expect(new X509Certificate(after.gateway.cert).subject.split("\n").sort()).toEqual([
    "CN=spry:gateway",
    "O=spry:system",
  ]);
  rmSync(old, { recursive: true });
});
