/** Routes: shares, tags, pinned Revisions, and the Services and places at the gateway by which they are called. */
import { gatewaySliceManager, knative, type KService, type TrafficTarget } from "@spry/function";
import {
  controllerRef,
  type EndpointSlice,
  getCondition,
  resources,
  type Service,
} from "@spry/kube";
import { describe, expect, test } from "vitest";
import { type GatewayAddressing } from "./options.ts";
import { kservice, namespace, ServingPlatform } from "./testing/platform.ts";

const address: GatewayAddressing = { kind: "address", port: 8080 };
const second = { timeoutSeconds: 20 };
const split = (...traffic: TrafficTarget[]) => ({ traffic });

/** A Service with two Revisions that are ready, and this traffic. */
async function twoRevisions(platform: ServingPlatform, more: object): Promise<KService> {
  await platform.running(kservice("hello"));
  await platform.running(kservice("hello", second), "hello-00002");
  return platform.apply(kservice("hello", second, more));
}

/** The status once its traffic is about these Revisions. */
function trafficOf(platform: ServingPlatform, ...wanted: string[]) {
  return platform.until(`traffic to ${wanted.join()}`, async () => {
    const { status } = await platform.get(knative.services, "hello");
    const shown = (status?.traffic ?? []).map(
      ({ revisionName, percent, tag }) => `${revisionName}=${percent}${tag ? ` ${tag}` : ""}`,
    );
    return shown.join() === wanted.join() && status;
  });
}

function sliceOf(platform: ServingPlatform, service: string): Promise<EndpointSlice> {
  return platform.until(`slice of ${service}`, () =>
    platform.get(resources.endpointSlices, `${service}-gateway`).catch(() => undefined),
  );
}

describe("traffic", () => {
  test("is divided, and tags have hosts and Services of their own", async () => {
    await using platform = await ServingPlatform.start();
    await twoRevisions(
      platform,
      split(
        { revisionName: "hello-00001", percent: 80, tag: "blue" },
        { latestRevision: true, percent: 20 },
        { revisionName: "hello-00001", percent: 0, tag: "old" },
      ),
    );
    const status = await trafficOf(
      platform,
      "hello-00001=80 blue",
      "hello-00002=20",
      "hello-00001=0 old",
    );
    expect(status?.traffic).toMatchObject([
      { latestRevision: false, url: "http://blue-hello.shop.localhost:8080" },
      { latestRevision: true },
      { url: "http://old-hello.shop.localhost:8080" },
    ]);
    await platform.condition(knative.services, "hello", "Ready=True");
    const named = await platform.get(resources.services, "blue-hello");
    expect(named.metadata.labels).toMatchObject({ "serving.knative.dev/route": "hello" });
    // Without the tag the Service goes.
    await platform.apply(kservice("hello", second, split({ latestRevision: true, percent: 100 })));
    await platform.until("no Service of the tag", async () =>
      platform.get(resources.services, "blue-hello").then(
        () => false,
        () => true,
      ),
    );
  });

  test.each([
    ["a Revision that does not exist", "hello-00009", "RevisionMissing"],
    ["a Revision of another Service", "other-00001", "RevisionNotOwned"],
  ])("%s changes nothing of what is served", async (_, revisionName, reason) => {
    await using platform = await ServingPlatform.start();
    await platform.running(kservice("hello"));
    await platform.running(kservice("other"));
    await platform.apply(kservice("hello", {}, split({ revisionName, percent: 100 })));
    const service = await platform.condition(
      knative.services,
      "hello",
      `RoutesReady=False ${reason}`,
    );
    expect(service.status?.traffic).toMatchObject([{ revisionName: "hello-00001", percent: 100 }]);
  });

  test("a pinned Revision that comes later gets its requests then", async () => {
    await using platform = await ServingPlatform.start();
    await platform.running(kservice("hello"));
    const pinned = split({ revisionName: "hello-00002", percent: 100 });
    await platform.apply(kservice("hello", {}, pinned));
    await platform.condition(knative.services, "hello", "RoutesReady=False RevisionMissing");
    await platform.apply(kservice("hello", second, pinned));
    await platform.rollOut("hello-00002");
    await trafficOf(platform, "hello-00002=100");
  });

  test("a Route within the cluster has no host outside", async () => {
    await using platform = await ServingPlatform.start();
    const service = kservice("hello");
    service.metadata.labels = { "networking.knative.dev/visibility": "cluster-local" };
    const { status } = await platform.running(service);
    expect(status?.url).toBe("http://hello.shop.svc.cluster.local");
  });
});

describe("the Service of a Route", () => {
  test("has an address of its own at the gateway, the same after a new leader", async () => {
    await using platform = await ServingPlatform.start({ callers: address });
    await platform.running(kservice("hello"));
    const slice = await sliceOf(platform, "hello");
    expect(slice.metadata.labels).toMatchObject({
      "kubernetes.io/service-name": "hello",
      "endpointslice.kubernetes.io/managed-by": gatewaySliceManager,
    });
    expect(slice.ports).toEqual([{ name: "http", port: 8080, protocol: "TCP" }]);
    const [place] = slice.endpoints[0]?.addresses ?? [];
    expect(place).toMatch(/^127\.(9[6-9]|10\d|11[01])\.\d+\.\d+$/);
    await platform.stopRoom();
    platform.startRoom();
    await platform.running(kservice("second"));
    const other = await sliceOf(platform, "second");
    expect(other.endpoints[0]?.addresses[0]).not.toBe(place);
    expect((await sliceOf(platform, "hello")).endpoints[0]?.addresses).toEqual([place]);
  });

  test("or a port of its own at every gateway, as those come and go", async () => {
    let gateways = ["10.0.0.2", "10.0.0.1"];
    const callers: GatewayAddressing = { kind: "port", addresses: () => gateways };
    await using platform = await ServingPlatform.start({ callers });
    await platform.running(kservice("hello"));
    const slice = await sliceOf(platform, "hello");
    const port = slice.ports?.[0]?.port ?? 0;
    expect(port).toBeGreaterThanOrEqual(20_000);
    expect(port).toBeLessThan(32_000);
    gateways = ["10.0.0.3"];
    await platform.until("the new gateway", async () => {
      await platform.clock.advance(200);
      const { endpoints, ports } = await sliceOf(platform, "hello");
      return endpoints[0]?.addresses[0] === "10.0.0.3" && ports?.[0]?.port === port;
    });
  });

  test("without a place is reported in its Route, and gets one that becomes free", async () => {
    const callers: GatewayAddressing = { kind: "port", addresses: () => ["10.0.0.1"] };
    await using platform = await ServingPlatform.start({ callers, maxPlaces: 3 });
    await platform.running(kservice("first"));
    await platform.running(kservice("second"));
    await platform.apply(kservice("third"));
    await platform.rollOut("third-00001");
    const ingress = "IngressReady=False NoAddressLeft";
    const route = await platform.condition(knative.routes, "third", ingress);
    expect(getCondition(route.status?.conditions, "IngressReady")?.message).toBe(
      'Callers inside the cluster cannot reach Service "third": namespace "shop" has reached its limit of addresses at the gateway. Delete Routes or tags that are not needed.',
    );
    expect(route.status?.traffic).toMatchObject([{ revisionName: "third-00001", percent: 100 }]);
    // The embedded API server collects no garbage: what belongs to the Service goes by hand.
    await platform.client.delete(knative.services, { namespace, name: "first" });
    await platform.client.delete(knative.routes, { namespace, name: "first" });
    await platform.condition(knative.routes, "third", "IngressReady=True");
  });

  test("that belongs to another owner is not touched", async () => {
    await using platform = await ServingPlatform.start({ callers: address });
    const foreign: Service = {
      metadata: { name: "hello", namespace },
      spec: { ports: [{ port: 80 }], selector: { a: "b" } },
    };
    await platform.client.create(resources.services, foreign);
    await platform.apply(kservice("hello"));
    await platform.rollOut("hello-00001");
    const route = await platform.condition(knative.routes, "hello", "IngressReady=False NotOwned");
    expect(getCondition(route.status?.conditions, "IngressReady")?.message).toBe(
      'There is an existing placeholder Service "hello" that we do not own.',
    );
    const { spec } = await platform.get(resources.services, "hello");
    expect(spec?.selector).toEqual({ a: "b" });
  });

  test("that is the owner's is adopted: its slice comes without the selector, and goes once Pods answer", async () => {
    await using platform = await ServingPlatform.start({ callers: address });
    // Any object does for an owner; in real life it is a Function.
    const owner = await platform.client.create(resources.configMaps, {
      metadata: { name: "owner", namespace },
    });
    const ownerReferences = [controllerRef(resources.configMaps, owner)];
    const selector = { app: "hello" };
    await platform.client.create(resources.services, {
      metadata: { name: "hello", namespace, ownerReferences },
      spec: { ports: [{ name: "http", port: 80 }], selector },
    });
    const service = kservice("hello");
    service.metadata.ownerReferences = ownerReferences;
    await platform.running(service);
    await platform.settle();
    const target = { namespace, name: "hello" };
    const slice = () =>
      platform.get(resources.endpointSlices, "hello-gateway").catch(() => undefined);
    expect(await slice()).toBeUndefined();

    await platform.client.patch(resources.services, target, { spec: { selector: null } });
    await platform.until("the slice", slice);
    await platform.client.patch(resources.services, target, { spec: { selector } });
    await platform.settle();
    await platform.clock.advance(2_000);
    expect(await slice()).toBeDefined();
    await platform.client.create(resources.endpointSlices, {
      metadata: {
        name: "hello-abcde",
        namespace,
        labels: {
          "kubernetes.io/service-name": "hello",
          "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        },
      },
      addressType: "IPv4",
      endpoints: [{ addresses: ["10.0.0.9"], conditions: { ready: true } }],
      ports: [{ name: "http", port: 8080 }],
    });
    await platform.until("the slice gone", async () => {
      await platform.clock.advance(200);
      return (await slice()) === undefined;
    });
  });
});

test("a new Revision takes over within rollout-duration, and requests are divided until then", async () => {
  await using platform = await ServingPlatform.start();
  const slowly = (spec: object) => {
    const service = kservice("hello", spec);
    service.metadata.annotations = { "serving.knative.dev/rollout-duration": "100s" };
    return service;
  };
  await platform.running(slowly({}));
  await platform.apply(slowly(second));
  await platform.rollOut("hello-00002");
  const shares = () =>
    platform.get(knative.routes, "hello").then(({ status }) => {
      const of = (name: string) =>
        status?.traffic?.find(({ revisionName }) => revisionName === name)?.percent ?? 0;
      return [of("hello-00001"), of("hello-00002")] as const;
    });
  await platform.until("the first requests", async () => (await shares())[1] === 1);
  await platform.condition(knative.routes, "hello", "IngressReady=Unknown RolloutInProgress");
  await platform.until("half of them", async () => {
    await platform.pass(1_000);
    const [old, latest] = await shares();
    expect(old + latest).toBe(100);
    return latest >= 50;
  });
  await platform.until("all of them", async () => {
    await platform.pass(2_000);
    return (await shares())[1] === 100;
  });
  await platform.condition(knative.services, "hello", "Ready=True");
  expect((await platform.get(knative.routes, "hello")).status?.traffic).toHaveLength(1);
}, 60_000);

test("Revisions without a Route are deleted by age and number, as config-gc says", async () => {
  await using platform = await ServingPlatform.start();
  await platform.client.apply(resources.configMaps, {
    metadata: { name: "config-gc", namespace: "knative-serving" },
    data: {
      "min-non-active-revisions": "1",
      "retain-since-create-time": "1h",
      "retain-since-last-active-time": "1h",
    },
  });
  for (const n of [1, 2, 3])
    await platform.running(kservice("hello", { timeoutSeconds: n }), `hello-0000${n}`);
  await platform.apply(kservice("hello", { timeoutSeconds: 4 }));
  await platform.rollOut("hello-00004");
  await trafficOf(platform, "hello-00004=100");
  await platform.settle();
  const names = async () => {
    const { items } = await platform.client.list(knative.revisions, { namespace });
    return items.map(({ metadata }) => metadata.name ?? "").toSorted((a, b) => (a < b ? -1 : 1));
  };
  expect(await names()).toHaveLength(4);
  await platform.clock.advance(2 * 3_600_000);
  await platform.until("fewer Revisions", async () => {
    return (await names()).join() === "hello-00003,hello-00004";
  });
});
