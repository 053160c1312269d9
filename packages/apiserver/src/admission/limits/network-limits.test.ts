import { KubeClient, resources } from "@spry/kube";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "../../index.ts";

let server: ApiServer;
let client: KubeClient;

beforeEach(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(server.transport());
  for (const name of ["a", "b"]) await client.create(resources.namespaces, { metadata: { name } });
});
afterEach(() => server.close());

const blocks = (count: number, except: string[] = []) =>
  Array.from({ length: count }, (_, index) => ({
    ipBlock: { cidr: `10.${index >> 8}.${index & 255}.0/24`, ...(except.length > 0 && { except }) },
  }));
const policy = (name: string, from: object[], namespace = "a") =>
  client.create(resources.networkPolicies, {
    metadata: { namespace, name },
    spec: { podSelector: {}, ingress: [{ from }] },
  });

test("policies with more blocks than a namespace may have are refused with the numbers", async () => {
  await policy("one", blocks(3000));
  await expect(policy("two", blocks(3000))).rejects.toMatchObject({
    code: 403,
    message: expect.stringMatching(
      /^networkpolicies\.networking\.k8s\.io "two" is forbidden: exceeded the limit of namespace a for its NetworkPolicies' entries \(.*\): used 3021, requested 3021 more, limited to 5000$/,
    ),
  });
  await expect(policy("two", blocks(3000), "b")).resolves.toBeDefined();
});

test("a policy cannot grow beyond the limit, and shrinks and goes at any time", async () => {
  const place = { namespace: "a", name: "one" };
  const spec = (count: number) => ({ spec: { ingress: [{ from: blocks(count) }] } });
  await policy("one", blocks(3000));
  await expect(client.patch(resources.networkPolicies, place, spec(6000))).rejects.toMatchObject({
    code: 403,
  });
  await client.patch(resources.networkPolicies, place, spec(4000));
  await expect(policy("two", blocks(1000))).rejects.toMatchObject({ code: 403 });
  await client.patch(resources.networkPolicies, place, spec(10));
  await policy("two", blocks(1000));
  await client.delete(resources.networkPolicies, place);
  await policy("three", blocks(3000));
});

test("exceptions, selectors and policies themselves count", async () => {
  const except = Array.from({ length: 30 }, (_, index) => `10.0.0.${index * 8}/29`);
  const same = Array.from({ length: 200 }, () => ({ ipBlock: { cidr: "10.0.0.0/24", except } }));
  await expect(policy("exceptions", same)).rejects.toThrow("requested 6221 more");
  const peers = Array.from({ length: 600 }, (_, index) => ({
    podSelector: { matchLabels: { app: `a-${index}` } },
  }));
  await expect(policy("selectors", peers)).rejects.toThrow("requested 6021 more");
  const made = Array.from({ length: 260 }, (_, index) => policy(`p-${index}`, []));
  await expect(Promise.all(made)).rejects.toThrow("limited to 5000");
});

test("Services and their ports are counted; a restart counts the same", async () => {
  const ports = Array.from({ length: 20_000 }, (_, index) => ({
    name: `p-${index}`,
    port: index + 1,
  }));
  const service = (name: string, namespace = "a") =>
    client.create(resources.services, {
      metadata: { namespace, name },
      spec: { selector: { app: name }, ports },
    });
  await service("one");
  await service("two");
  await expect(service("three")).rejects.toThrow(
    "exceeded the limit of namespace a for its Services' ports: used 40000, requested 20000 more, limited to 40000",
  );
  await expect(service("three", "b")).resolves.toBeDefined();
});
