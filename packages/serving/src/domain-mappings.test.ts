/** DomainMappings: a host belongs to one of them, and leads to a Service of its namespace. */
import { type DomainMapping, domainMappings } from "@spry/function";
import { getCondition, resources } from "@spry/kube";
import { expect, test } from "vitest";
import { kservice, namespace, ServingPlatform } from "./testing/platform.ts";

const mapping = (host: string, inNamespace = namespace, ref: object = {}): DomainMapping => ({
  metadata: { name: host, namespace: inNamespace },
  spec: {
    ref: { apiVersion: "serving.knative.dev/v1", kind: "Service", name: "hello", ...ref },
  },
});

function conditionOf(
  platform: ServingPlatform,
  { metadata }: DomainMapping,
  type: string,
  wanted: string,
): Promise<DomainMapping> {
  return platform.until(`${metadata.name} ${type}=${wanted}`, async () => {
    const object = await platform.client.get(domainMappings, metadata as { name: string });
    const { status, reason = "" } = getCondition(object.status?.conditions, type) ?? {};
    return `${status} ${reason}`.trim() === wanted && object;
  });
}

test("a host leads to a Service, and to that of another namespace only when it is free again", async () => {
  await using platform = await ServingPlatform.start();
  const { client } = platform;
  await client.apply(resources.namespaces, { metadata: { name: "other" } });
  await platform.running(kservice("hello"));
  const first = mapping("shop.example.com");
  const second = mapping("shop.example.com", "other");
  await client.create(domainMappings, first);
  const { status } = await conditionOf(platform, first, "Ready", "True");
  expect(status).toMatchObject({
    url: "http://shop.example.com:8080",
    address: { url: "http://hello.shop.svc.cluster.local" },
  });
  await client.create(domainMappings, second);
  await conditionOf(platform, second, "DomainClaimed", "False DomainAlreadyClaimed");
  await client.delete(domainMappings, first.metadata as { name: string });
  await conditionOf(platform, second, "DomainClaimed", "True");
  await conditionOf(platform, second, "ReferenceResolved", "False ResolveFailed");
});

test.each([
  ["of a Service", "hello.other.localhost", {}, "DomainClaimed", "False DomainReserved"],
  ["to nothing", "a.example.com", { name: "none" }, "ReferenceResolved", "False ResolveFailed"],
  [
    "to another namespace",
    "b.example.com",
    { namespace: "other" },
    "ReferenceResolved",
    "False ResolveFailed",
  ],
  ["to a Pod", "c.example.com", { kind: "Pod" }, "ReferenceResolved", "False ResolveFailed"],
])("a host %s is not granted", async (_, host, ref, type, wanted) => {
  await using platform = await ServingPlatform.start();
  const refused = mapping(host, namespace, ref);
  await platform.client.create(domainMappings, refused);
  await conditionOf(platform, refused, type, wanted);
});

test("a Route's URL is in the domain that config-domain has for its labels", async () => {
  await using platform = await ServingPlatform.start();
  await platform.client.apply(resources.configMaps, {
    metadata: { name: "config-domain", namespace: "knative-serving" },
    data: { "example.com": "", "shop.example": "selector:\n  app: shop\n" },
  });
  const service = await platform.running(kservice("hello"));
  expect(service.status?.url).toBe("http://hello.shop.example.com:8080");
  const labelled = kservice("sold");
  labelled.metadata.labels = { app: "shop" };
  expect((await platform.running(labelled)).status?.url).toBe("http://sold.shop.shop.example:8080");
});
