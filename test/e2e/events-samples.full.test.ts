/**
 * What users of the original apply and send to learn its eventing, step by step: several types, names that are cleaned, a limit of what is
 * in flight, the legacy format, and one Function that publishes to another. The outputs are those that its documents show.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Platform, run } from "../support/platform.ts";
import { untilTrue } from "../support/until-true.ts";

const platform = new Platform();
const until = (what: string, ask: () => Promise<boolean>) => untilTrue(what, ask, 60_000);

/** As it is written there, indentation and all; the runtime is one that is served. */
const functionOf = (name: string, source: string) => `
   apiVersion: serverless.kyma-project.io/v1alpha2
   kind: Function
   metadata:
     name: ${name}
     namespace: default
   spec:
     replicas: 1
     resourceConfiguration:
       function:
         profile: S
       build:
         profile: local-dev
     runtime: nodejs22
     source:
       inline:
         source: |-
${source.replace(/^/gm, "           ")}
`;
const receiver = `module.exports = {
  main: async function (event, context) {
    console.log("Received event:", event.data, ", Event Type:", event.extensions.request.headers['ce-type']);
    return;
  }
}`;

const subscriptionOf = (name: string, spec: string) => `
    apiVersion: eventing.kyma-project.io/v1alpha2
    kind: Subscription
    metadata:
      name: ${name}
      namespace: default
    spec:
${spec.replace(/^/gm, "      ")}
`;
const toLastOrder = "sink: 'http://lastorder.default.svc.cluster.local'\nsource: myapp\n";

async function subscribe(name: string, manifest: string): Promise<void> {
  await platform.k("apply -f -", manifest);
  await until(`Subscription ${name} is ready`, async () =>
    (await platform.k(`get subscriptions ${name} -o=jsonpath="{.status.ready}"`)).includes("true"),
  );
}

/** With curl, as users do; a CloudEvent in binary mode. Resolves with the status. */
async function send(type: string, id: string, data: string): Promise<number> {
  const headers = [
    "ce-specversion: 1.0",
    `ce-type: ${type}`,
    "ce-source: myapp",
    "ce-eventtypeversion: v1",
    `ce-id: ${id}`,
    "content-type: application/json",
  ];
  return curl([...headers.flatMap((header) => ["-H", header]), "-d", data], "/publish");
}

async function curl(args: string[], path: string): Promise<number> {
  const url = `${platform.endpoints.publisher}${path}`;
  const status = ["-w", "%{http_code}", "-o", "/dev/null"];
  const { stdout } = await run("curl", ["-s", "-X", "POST", ...status, ...args, url]);
  return Number(stdout);
}

const logs = (name: string) =>
  platform.k(`logs -l serverless.kyma-project.io/function-name=${name} --tail=200`);
const untilLogged = (name: string, text: string) =>
  until(`${name} logs ${text}`, async () => (await logs(name)).includes(text));

beforeAll(async () => {
  await platform.start();
  await platform.k("apply -f -", functionOf("lastorder", receiver));
  await platform.k("wait --for=condition=Running function/lastorder --timeout=120s");
}, 240_000);
afterAll(() => platform.remove());

test("a Subscription to several types", async () => {
  const types = "types:\n - order.received.v1\n - order.changed.v1";
  await subscribe("lastorder-sub", subscriptionOf("lastorder-sub", toLastOrder + types));
  const order = (status: string) => `{"orderCode":"3211213", "orderStatus":"${status}"}`;
  const first = "cc99dcdd-6f6d-43d6-afef-d024eb276584";
  expect(await send("order.received.v1", first, order("received"))).toBe(204);
  const second = "94064655-7e9e-4795-97a3-81bfd497aac6";
  expect(await send("order.changed.v1", second, order("changed"))).toBe(204);
  const shown = (status: string) =>
    `Received event: { orderCode: '3211213', orderStatus: '${status}' }`;
  await untilLogged("lastorder", shown("received"));
  await untilLogged("lastorder", shown("changed"));
});

test("a type with a character that names must not have", async () => {
  const types = "types:\n  - order.payment*success.v1";
  const name = "lastorder-payment-sub";
  await subscribe(name, subscriptionOf(name, toLastOrder + types));
  const kept = await platform.k(`get subscriptions ${name} -o=jsonpath="{.status.types}"`);
  expect(kept).toContain(`"cleanType":"order.paymentsuccess.v1"`);
  const id = "e4bcc616-c3a9-4840-9321-763aa23851fc";
  const data = `{"orderCode":"3211213", "orderAmount":"1250"}`;
  expect(await send("order.payment*success.v1", id, data)).toBe(204);
  await untilLogged("lastorder", "{ orderCode: '3211213', orderAmount: '1250' } , Event Type:");
});

test("five events in flight, and not more", async () => {
  const slow = `module.exports = {
  main: async function (event, context) {
    console.log("Processing event:", event.data);
    await new Promise(r => setTimeout(r, 500));
    console.log("Completely processed event:", event.data);
    return;
  }
}`;
  await platform.k("apply -f -", functionOf("slow", slow));
  await platform.k("wait --for=condition=Running function/slow --timeout=120s");
  const spec = `config:
  maxInFlightMessages: "5"
sink: 'http://slow.default.svc.cluster.local'
source: myapp
types:
  - order.slow.v1`;
  await subscribe("slow-sub", subscriptionOf("slow-sub", spec));
  const ids = Array.from({ length: 15 }, (_, at) => at + 1);
  for (const at of ids) {
    const id = `e4bcc616-c3a9-4840-9321-763aa23851f${at}`;
    expect(await send("order.slow.v1", id, `{"orderCode":"${at}"}`)).toBe(204);
  }
  const completed = async () => (await logs("slow")).match(/Completely processed/g)?.length ?? 0;
  await until("all are processed", async () => (await completed()) === ids.length);
  let inFlight = 0;
  let most = 0;
  for (const line of (await logs("slow")).split("\n")) {
    if (line.includes("Processing event:")) inFlight++;
    if (line.includes("Completely processed event:")) inFlight--;
    most = Math.max(most, inFlight);
  }
  expect(most).toBe(5);
});

test("the legacy format", async () => {
  const types = "types:\n  - order.legacy.v1";
  await subscribe("legacy-sub", subscriptionOf("legacy-sub", toLastOrder + types));
  const body = `
       {
           "event-type": "order.legacy",
           "event-type-version": "v1",
           "event-time": "2020-09-28T14:47:16.491Z",
           "data": {"orderCode":"3211214"}
       }
`;
  const args = ["--data", body, "-H", "Content-Type: application/json"];
  expect(await curl(args, "/myapp/v1/events")).toBe(200);
  await untilLogged("lastorder", "Received event: { orderCode: '3211214' }");
});

const older = `
apiVersion: eventing.kyma-project.io/v1alpha1
kind: Subscription
metadata:
  name: event-receiver
  namespace: default
spec:
  filter:
    filters:
    - eventSource:
        property: source
        type: exact
        value: ""
      eventType:
        property: type
        type: exact
        value: sap.kyma.custom.acme.payload.sanitised.v1
  protocol: ""
  protocolsettings: {}
  sink: http://event-receiver.default.svc.cluster.local
`;
const newer = subscriptionOf(
  "event-receiver",
  `sink: http://event-receiver.default.svc.cluster.local
typeMatching: exact
source: ""
types:
  - sap.kyma.custom.acme.payload.sanitised.v1`,
);

test.each([
  ["v1alpha1", older],
  ["v1alpha2", newer],
])("one Function publishes to another, whose Subscription is %s", async (version, manifest) => {
  const emitter = `module.exports = {
  main: async function (event, context) {
    return await event.emitCloudEvent("sap.kyma.custom.acme.payload.sanitised.v1", "kyma", event.data)
      .then(resp => { return "Event sent"; })
      .catch(err => { console.error(err); return err; });
  }
}`;
  const storing = `module.exports = {
  main: function (event, context) {
    console.log("storing data...", JSON.stringify(event.data));
  }
}`;
  await platform.k("apply -f -", functionOf("event-emitter", emitter));
  await platform.k("apply -f -", functionOf("event-receiver", storing));
  await platform.k(
    "wait --for=condition=Running function/event-emitter function/event-receiver --timeout=120s",
  );
  await subscribe("event-receiver", manifest);
  const { status, body } = await platform.call("event-emitter.default", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: `{"foo":"${version}"}`,
  });
  expect([status, body]).toEqual([200, "Event sent"]);
  await untilLogged("event-receiver", `storing data... {"foo":"${version}"}`);
  await platform.k("delete subscriptions event-receiver");
});
