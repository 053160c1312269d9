/** The end-to-end scenarios of the system that Spry succeeds (docs/compatibility.md#scenarios), on either engine. */
import { expect, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";
import { functionManifest } from "../support/platform.ts";

const system = "kyma-system";
const json = { "content-type": "application/json" };

/** Keeps the last event of each type, and tells it to who asks by `?type=`. */
const keepingEvents = `
  const seen = new Map();
  module.exports = {
    main(event) {
      const { request, response } = event.extensions;
      if (request.method === "GET") {
        const found = seen.get(request.query.type);
        if (!found) response.status(404);
        return found ?? "";
      }
      const names = ["ce-type", "ce-source", "ce-specversion", "ce-eventtypeversion"];
      const attributes = Object.fromEntries(names.map((name) => [name, event[name]]));
      if (event["ce-type"]) {
        seen.set(event["ce-type"], { ...attributes, data: event.data });
        return "";
      }
      return EMIT;
    },
  };`;

const platform = enginePlatform(async (started) => {
  const runs = async (name: string, source: string, namespace = "default") => {
    await started.k("apply -f -", functionManifest(name, source, {}, { namespace }));
    await started.k(`wait --for=condition=Running function/${name} -n ${namespace} --timeout=110s`);
  };
  await runs("eventing-publisher-proxy", keepingEvents.replace("EMIT", '""'), system);
  const emit = `event.emitCloudEvent("send-check", "nodejs24", { hello: "world" }, { eventtypeversion: "v1alpha2" }).then(() => "")`;
  await runs("events", keepingEvents.replace("EMIT", emit));
});

test("simple: environment from a ConfigMap and a Secret, then an edit that brings a package", async () => {
  await platform.k("create configmap simple-settings --from-literal=key=cmValue");
  await platform.k("create secret generic simple-settings --from-literal=key=secretValue");
  const env = ["configMapKeyRef", "secretKeyRef"].map((kind) => ({
    name: kind === "secretKeyRef" ? "SECRET" : "CONFIG",
    valueFrom: { [kind]: { name: "simple-settings", key: "key" } },
  }));
  const body = "`${process.env.CONFIG}-${process.env.SECRET}`";
  const first = `module.exports = { main: () => ${body} };`;
  await platform.k("apply -f -", functionManifest("simple", first, { env }));
  await platform.callUntil("simple.default", (answer) => answer.body === "cmValue-secretValue");

  const second = `const camelCase = require("camelcase"); module.exports = { main: () => camelCase(${body}) };`;
  const dependencies = JSON.stringify({ dependencies: { camelcase: "^6.3.0" } });
  await platform.k("apply -f -", functionManifest("simple", second, { env, dependencies }));
  await platform.callUntil("simple.default", (answer) => answer.body === "cmValueSecretValue");
});

test("tracing: a call that a Function makes carries its trace on, in both notations", async () => {
  const echo = `module.exports = { main: (event) => event.extensions.request.headers };`;
  const caller = `module.exports = { main: () => fetch("http://headers.default.svc.cluster.local/").then((r) => r.json()) };`;
  await platform.k("apply -f -", functionManifest("headers", echo));
  await platform.k("apply -f -", functionManifest("caller", caller));
  for (const name of ["headers", "caller"])
    await platform.k(`wait --for=condition=Running function/${name} --timeout=110s`);
  const headers = { "x-b3-sampled": "1" };
  await platform.callUntil("caller.default", ({ status }) => status === 200);
  const seen = JSON.parse((await platform.call("caller.default", { headers })).body) as object;
  expect(Object.keys(seen)).toEqual(
    expect.arrayContaining(["traceparent", "x-b3-traceid", "x-b3-spanid"]),
  );
});

test("api-gateway: the Service selects by exactly four labels, and the Function's Pods have them", async () => {
  const { selector } = JSON.parse(await platform.k("get service events -o jsonpath={.spec}")) as {
    selector: Record<string, string>;
  };
  expect(Object.keys(selector)).toHaveLength(4);
  const name = "serverless.kyma-project.io/function-name=events";
  const kind = "serverless.kyma-project.io/resource=deployment";
  const { items } = JSON.parse(await platform.k(`get pods -l ${name},${kind} -o json`)) as {
    items: { metadata: { labels: Record<string, string> } }[];
  };
  expect(items).not.toEqual([]);
  for (const { metadata } of items) expect(metadata.labels).toMatchObject(selector);
});

const attributes = {
  source: "contract-test",
  specversion: "1.0",
  eventtypeversion: "v1alpha2",
};
const asRead = (type: string, source: string) => ({
  "ce-type": type,
  "ce-source": source,
  "ce-specversion": "1.0",
  "ce-eventtypeversion": "v1alpha2",
  data: { hello: "world" },
});

test.each([
  [
    "structured",
    {
      headers: { "content-type": "application/cloudevents+json" },
      body: JSON.stringify({
        ...attributes,
        type: "structured",
        id: "1",
        datacontenttype: "application/json",
        data: { hello: "world" },
      }),
    },
  ],
  [
    "binary",
    {
      headers: {
        ...json,
        "ce-type": "binary",
        "ce-id": "2",
        ...Object.fromEntries(
          Object.entries(attributes).map(([key, value]) => [`ce-${key}`, value]),
        ),
      },
      body: JSON.stringify({ hello: "world" }),
    },
  ],
])("cloud-events: the Function reads one in %s mode", async (type, request) => {
  await platform.callUntil("events.default", ({ status }) => status !== 503);
  expect((await platform.call("events.default", request)).status).toBeLessThan(300);
  const { body } = await platform.call("events.default", { path: `/?type=${type}` });
  expect(JSON.parse(body)).toEqual(asRead(type, "contract-test"));
});

test("cloud-events: what the Function emits reaches the publisher", async () => {
  expect((await platform.call("events.default", { method: "POST", body: "" })).status).toBe(200);
  const host = `eventing-publisher-proxy.${system}`;
  const { body } = await platform.callUntil(host, ({ status }) => status === 200, {
    path: "/?type=send-check",
  });
  expect(JSON.parse(body)).toEqual(asRead("send-check", "nodejs24"));
});
