/** From and to zero: the whole room on a real API server, with gateways that say what the test wants. */
import { knative } from "@spry/function";
import { resources, type Transport } from "@spry/kube";
import { expect, test } from "vitest";
import { CountingGateway } from "./testing/gateway.ts";
import { kservice, namespace, ServingPlatform } from "./testing/platform.ts";

const revision = "hello-00001";
const key = `${namespace}/${revision}`;

/** Nothing to wait for but the shortest window. */
const short = { "stable-window": "6s", "scale-to-zero-grace-period": "0s" };

async function platformWith(...gateways: CountingGateway[]): Promise<ServingPlatform> {
  return platformThrough((transport) => transport, ...gateways);
}

async function platformThrough(
  through: (transport: Transport) => Transport,
  ...gateways: CountingGateway[]
): Promise<ServingPlatform> {
  const platform = await ServingPlatform.start({
    gateways: () => gateways.map(({ url }) => url),
    through,
  });
  await platform.client.apply(resources.configMaps, {
    metadata: { name: "config-autoscaler", namespace: "knative-serving" },
    data: short,
  });
  for (const gateway of gateways) gateway.beat(platform.clock);
  await platform.until("readers", async () => gateways.every(({ readers }) => readers === 1));
  return platform;
}

/** Lets time pass until there are so many replicas; the Deployment controller does what it is asked for. */
async function scaled(platform: ServingPlatform, replicas: number): Promise<void> {
  let before: number | undefined;
  await platform.until(`${replicas} replicas`, async () => {
    await platform.pass(200);
    const now = await platform.replicas(revision);
    if (now !== before) await platform.rollOut(revision);
    return (before = now) === replicas;
  });
}

test("without requests a Revision has no Pods after a window, and stays ready", async () => {
  await using gateway = await CountingGateway.start();
  await using platform = await platformWith(gateway);
  await platform.running(kservice("hello"));
  await scaled(platform, 0);
  await platform.condition(knative.revisions, revision, "Active=False NoTraffic");
  await platform.until("the status", async () => {
    const { status } = await platform.get(knative.revisions, revision);
    return status?.actualReplicas === 0 && status.desiredReplicas === 0;
  });
  await platform.condition(knative.services, "hello", "Ready=True");
});

test("a request that begins to wait begins a Pod at once, without any time passing", async () => {
  await using gateway = await CountingGateway.start();
  await using platform = await platformWith(gateway);
  await platform.running(kservice("hello"));
  await scaled(platform, 0);
  await platform.settle();
  gateway.say(key, { at: 1, waiting: 1, requests: 1 });
  const deadline = performance.now() + 5_000;
  while ((await platform.replicas(revision)) !== 1) {
    expect(performance.now()).toBeLessThan(deadline);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
});

test("requests that go on keep their Pods, and many get more; then there are none again", async () => {
  await using gateway = await CountingGateway.start();
  await using platform = await platformWith(gateway);
  const service = kservice("hello", { containerConcurrency: 10 });
  await platform.running(service);
  gateway.say(key, { at: 1, active: 1, requests: 1 });
  await platform.settle();
  await platform.pass(20_000);
  expect(await platform.replicas(revision)).toBe(1);
  // 21 at a time with a target of 7.
  gateway.say(key, { at: 20_000, active: 21, requests: 21, load: 20_000 });
  await scaled(platform, 3);
  gateway.say(key, { at: 40_000, active: 0, load: 400_000 });
  await scaled(platform, 0);
});

test("two gateways are summed; one that dies has no requests any more", async () => {
  await using first = await CountingGateway.start("g1");
  const second = await CountingGateway.start("g2");
  const urls = [first.url, second.url];
  await using platform = await ServingPlatform.start({ gateways: () => urls });
  first.beat(platform.clock);
  second.beat(platform.clock);
  await platform.until("readers", async () => first.readers + second.readers === 2);
  await platform.running(kservice("hello", { containerConcurrency: 10 }));
  first.say(key, { at: 1, active: 6, requests: 6 });
  second.say(key, { at: 1, active: 8, requests: 8 });
  await scaled(platform, 2);
  await second[Symbol.asyncDispose]();
  urls.pop();
  await scaled(platform, 1);
});

test("without a gateway, and after a new leader, nothing is taken away for a window", async () => {
  const gateway = await CountingGateway.start();
  const urls = [gateway.url];
  await using platform = await ServingPlatform.start({ gateways: () => urls });
  await platform.client.apply(resources.configMaps, {
    metadata: { name: "config-autoscaler", namespace: "knative-serving" },
    data: short,
  });
  await platform.running(kservice("hello"));
  await gateway[Symbol.asyncDispose]();
  await platform.settle();
  await platform.clock.advance(120_000);
  expect(await platform.replicas(revision)).toBe(1);

  await platform.stopRoom();
  await using next = await CountingGateway.start("g2");
  urls[0] = next.url;
  platform.startRoom();
  next.beat(platform.clock);
  await platform.until("a reader", async () => next.readers === 1);
  await platform.pass(5_000);
  expect(await platform.replicas(revision)).toBe(1);
  await scaled(platform, 0);
});

test("what a gateway says wrongly is passed over", async () => {
  await using gateway = await CountingGateway.start();
  await using platform = await platformWith(gateway);
  await platform.running(kservice("hello"));
  gateway.write(
    'no JSON\n{"revision":5}\n{"gateway":"g1","revision":"a/b","active":-1}\n[]\nnull\n',
  );
  gateway.say("nowhere/nothing", { waiting: 1 });
  gateway.write("x".repeat(100_000));
  await platform.until("another connection", async () => gateway.readers === 0);
  await platform.until("a reader", async () => gateway.readers === 1);
  gateway.say(key, { at: 1, active: 200, requests: 1 });
  await scaled(platform, 3);
});

test("answers that are slower than the watch are not written again and again", async () => {
  await using gateway = await CountingGateway.start();
  let writes = 0;
  let afterWrite = async () => {};
  const slow: (transport: Transport) => Transport = (transport) => async (request) => {
    const isScale = request.method === "PATCH" && request.url.includes("/deployments/");
    const response = await transport(request);
    if (!isScale) return response;
    writes++;
    await afterWrite();
    await new Promise((resolve) => setTimeout(resolve, 20));
    return response;
  };
  await using platform = await platformThrough(slow, gateway);
  await platform.running(kservice("hello"));
  // The Deployment controller is faster than the answer, too: what was written is not the newest that is seen.
  afterWrite = async () => void (await platform.rollOut(revision));
  await platform.until("no Pods", async () => {
    await platform.pass(200);
    return (await platform.replicas(revision)) === 0;
  });
  await new Promise((resolve) => setTimeout(resolve, 100));
  afterWrite = async () => {};
  gateway.say(key, { at: 1, waiting: 1, requests: 1 });
  await platform.until("a Pod", async () => (await platform.replicas(revision)) === 1);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(writes).toBeLessThan(5);
});
