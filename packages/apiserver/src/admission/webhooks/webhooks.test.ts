import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { KubeClient, resources, type UnknownObject } from "@spry/kube";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "../../index.ts";

interface Review {
  request: {
    uid: string;
    operation: string;
    name: string;
    object: UnknownObject | null;
    oldObject: UnknownObject | null;
    dryRun: boolean;
    userInfo: { username: string };
  };
}
type Answer = (review: Review["request"]) => object;

let directory: string;
let webhook: Server;
let caBundle: string;
let answer: Answer;
let connections = 0;
let calls: Review["request"][] = [];

let server: ApiServer;
let client: KubeClient;

beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), "webhook-"));
  const file = (name: string) => path.join(directory, name);
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      "-days",
      "2",
      "-subj",
      "/CN=hook",
      "-addext",
      "subjectAltName=IP:127.0.0.1,DNS:hook.default.svc",
      "-keyout",
      file("key"),
      "-out",
      file("crt"),
    ],
    { stdio: "ignore" },
  );
  caBundle = readFileSync(file("crt")).toString("base64");
  webhook = createServer(
    { key: readFileSync(file("key")), cert: readFileSync(file("crt")) },
    (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const review = JSON.parse(Buffer.concat(chunks).toString()) as Review;
        calls.push(review.request);
        const body = {
          apiVersion: "admission.k8s.io/v1",
          kind: "AdmissionReview",
          response: { uid: review.request.uid, ...answer(review.request) },
        };
        response.end(JSON.stringify(body));
      });
    },
  );
  webhook.on("secureConnection", () => connections++);
  await new Promise<void>((resolve) => webhook.listen(0, "127.0.0.1", resolve));
});
afterAll(() => {
  webhook.close();
  rmSync(directory, { recursive: true });
});

beforeEach(async () => {
  calls = [];
  connections = 0;
  answer = () => ({ allowed: true });
  server = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(server.transport());
});
afterEach(() => server.close());

function configuration(kind: "Mutating" | "Validating", extra: object = {}): UnknownObject {
  const { port } = webhook.address() as AddressInfo;
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: `${kind}WebhookConfiguration`,
    metadata: { name: "hooks" },
    webhooks: [
      {
        name: "check.example.com",
        clientConfig: { url: `https://127.0.0.1:${port}/check`, caBundle },
        rules: [
          {
            apiGroups: [""],
            apiVersions: ["v1"],
            resources: ["configmaps"],
            operations: ["CREATE", "UPDATE", "DELETE"],
          },
        ],
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        ...extra,
      },
    ],
  };
}

const configMap = (name: string, rest: object = {}) => ({
  metadata: { name, namespace: "default", ...rest },
  data: { a: "1" },
});
const validating = (extra?: object) =>
  client.create(
    resources.validatingWebhookConfigurations,
    configuration("Validating", extra) as never,
  );
const patch = (operations: object[]) => Buffer.from(JSON.stringify(operations)).toString("base64");

test("a mutating webhook changes the object before it is stored", async () => {
  answer = () => ({
    allowed: true,
    patchType: "JSONPatch",
    patch: patch([{ op: "add", path: "/data/b", value: "2" }]),
  });
  await client.create(resources.mutatingWebhookConfigurations, configuration("Mutating") as never);
  const created = await client.create(resources.configMaps, configMap("a"));
  expect(created.data).toEqual({ a: "1", b: "2" });
});

test("a patch of null means no change", async () => {
  const none = Buffer.from("null").toString("base64");
  answer = () => ({ allowed: true, patchType: "JSONPatch", patch: none });
  await client.create(resources.mutatingWebhookConfigurations, configuration("Mutating") as never);
  const created = await client.create(resources.configMaps, configMap("a"));
  expect(created.data).toEqual({ a: "1" });
});

test("a validating webhook refuses in its own words, and sees old and new", async () => {
  await validating();
  await client.create(resources.configMaps, configMap("a"));
  answer = () => ({
    allowed: false,
    status: { code: 422, reason: "Invalid", message: "not like this" },
  });
  const refused = client.patch(
    resources.configMaps,
    { name: "a", namespace: "default" },
    { data: { a: "2" } },
  );
  await expect(refused).rejects.toThrow(
    'admission webhook "check.example.com" denied the request: not like this',
  );
  await expect(refused).rejects.toMatchObject({ code: 422 });
  expect(calls.at(-1)).toMatchObject({
    operation: "UPDATE",
    userInfo: { username: "system:admin" },
    object: { data: { a: "2" } },
    oldObject: { data: { a: "1" } },
  });
  await expect(
    client.delete(resources.configMaps, { name: "a", namespace: "default" }),
  ).rejects.toThrow("not like this");
});

test("warnings travel to the client", async () => {
  answer = () => ({ allowed: true, warnings: ['use "b" instead'] });
  await validating();
  const body = JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", ...configMap("a") });
  const url = "http://kubernetes.internal/api/v1/namespaces/default/configmaps";
  const response = await server.transport()(
    new Request(url, { method: "POST", headers: { "content-type": "application/json" }, body }),
  );
  expect(response.headers.get("warning")).toBe(String.raw`299 - "use \"b\" instead"`);
});

test.each([
  ["Fail", 'Internal error occurred: failed calling webhook "check.example.com"'],
  ["Ignore", undefined],
])("with failurePolicy %s an unreachable webhook gives %j", async (failurePolicy, message) => {
  await validating({ failurePolicy, clientConfig: { url: "https://127.0.0.1:1/x" } });
  const created = client.create(resources.configMaps, configMap("a"));
  if (message) await expect(created).rejects.toThrow(message);
  else expect((await created).metadata.name).toBe("a");
});

test.each([
  ["objectSelector", { objectSelector: { matchLabels: { checked: "yes" } } }],
  [
    "namespaceSelector",
    { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "other" } } },
  ],
  [
    "matchConditions",
    { matchConditions: [{ name: "c", expression: "object.metadata.name != 'a'" }] },
  ],
])("%s keeps a webhook out of what is not its business", async (_, extra) => {
  answer = () => ({ allowed: false });
  await validating(extra);
  await client.create(resources.configMaps, configMap("a"));
  expect(calls).toEqual([]);
});

test("calls share a connection", async () => {
  await validating();
  for (const name of ["a", "b", "c"]) await client.create(resources.configMaps, configMap(name));
  expect(calls).toHaveLength(3);
  expect(connections).toBe(1);
});

test("a dry run reaches only webhooks without side effects", async () => {
  await validating({ sideEffects: "NoneOnDryRun" });
  await client.create(resources.configMaps, configMap("a"), { dryRun: true });
  expect(calls.at(-1)?.dryRun).toBe(true);
  await expect(
    client.get(resources.configMaps, { name: "a", namespace: "default" }),
  ).rejects.toThrow("not found");
});

const created = () => client.create(resources.configMaps, configMap("a"));
const throughService = { clientConfig: { service: { namespace: "default", name: "hook" } } };

async function serviceWith(address: string | undefined): Promise<void> {
  const { port } = webhook.address() as AddressInfo;
  const metadata = { name: "hook", namespace: "default" };
  await client.create(resources.services, {
    metadata,
    spec: { ports: [{ name: "https", port: 443, targetPort: port }], selector: { app: "hook" } },
  });
  await client.create(resources.endpointSlices, {
    metadata: { ...metadata, labels: { "kubernetes.io/service-name": "hook" } },
    addressType: "IPv4",
    ports: [{ name: "https", port }],
    endpoints: address ? [{ addresses: [address], conditions: { ready: true } }] : [],
  });
}

test("a webhook is reached through its Service, whose name its certificate is for", async () => {
  answer = () => ({ allowed: false, status: { message: "reached" } });
  await serviceWith("127.0.0.1");
  await validating({ clientConfig: { ...throughService.clientConfig, caBundle } });
  await expect(created()).rejects.toThrow("denied the request: reached");
});

test.each([
  ["absent", async () => {}, 'service "hook" not found'],
  ["without endpoints", () => serviceWith(undefined), 'no endpoints available for service "hook"'],
])("the error names a Service that is %s", async (_, prepare, problem) => {
  await prepare();
  await validating(throughService);
  await expect(created()).rejects.toThrow(
    `failed calling webhook "check.example.com": failed to call webhook: Post "https://hook.default.svc:443/?timeout=10s": ${problem}`,
  );
});

test("a webhook that takes too long has failed", async () => {
  const silent = createServer({ key: "", cert: "" });
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as AddressInfo;
  const url = `https://127.0.0.1:${port}/x`;
  await validating({ clientConfig: { url }, timeoutSeconds: 1, failurePolicy: "Fail" });
  await expect(created()).rejects.toThrow(`failed to call webhook: Post "${url}?timeout=1s"`);
  silent.close();
});

test.each([
  ["IfNeeded", ["absent", "absent", "yes"]],
  ["Never", ["absent", "absent"]],
])(
  "after another has changed the object, a webhook with %s sees labels %j",
  async (reinvocationPolicy, seen) => {
    const value = { late: "yes" };
    const change = patch([{ op: "add", path: "/metadata/labels", value }]);
    answer = () =>
      calls.length === 2
        ? { allowed: true, patchType: "JSONPatch", patch: change }
        : { allowed: true };
    const { webhooks, ...rest } = configuration("Mutating") as unknown as { webhooks: object[] };
    const both = ["first", "second"].map((name) => ({
      ...webhooks[0],
      name: `${name}.example.com`,
      reinvocationPolicy,
    }));
    await client.create(resources.mutatingWebhookConfigurations, {
      ...rest,
      webhooks: both,
    } as never);
    await created();
    expect(calls.map(({ object }) => object?.metadata.labels?.late ?? "absent")).toEqual(seen);
  },
);
