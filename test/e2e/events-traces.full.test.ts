/** One trace from a publisher through the queue to the Function: a real collector gets the spans of all of them. */
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { decodeRequest } from "../../runtimes/nodejs/src/testing/collector.ts";
import { functionManifest, Platform } from "../support/platform.ts";
import { untilTrue } from "../support/until-true.ts";

const platform = new Platform();
const trace = "0af7651916cd43dd8448eb211c80319c";
const publisherSpan = "b7ad6b7169203331";

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
}
const spans: (Span & { service: string })[] = [];

/** Functions send protobuf, events JSON. */
const collector = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks);
    const isJson = request.headers["content-type"] === "application/json";
    const { resourceSpans } = isJson
      ? (JSON.parse(body.toString()) as ReturnType<typeof decodeRequest>)
      : decodeRequest(body);
    for (const { resource, scopeSpans } of resourceSpans)
      for (const each of scopeSpans)
        for (const span of each.spans)
          spans.push({ ...span, service: String(resource.attributes[0]?.value["stringValue"]) });
    response.end();
  });
});

beforeAll(async () => {
  await new Promise<void>((resolve) => collector.listen(0, "0.0.0.0", resolve));
  await platform.start();
  const { port } = collector.address() as AddressInfo;
  const endpoint = `http://${platform.hostAddress}:${port}/v1/traces`;
  const serverless = {
    apiVersion: "operator.kyma-project.io/v1alpha1",
    kind: "Serverless",
    metadata: { name: "default", namespace: "kyma-system" },
    spec: { tracing: { endpoint } },
  };
  await platform.k("apply -f -", JSON.stringify(serverless));
  await platform.k("apply -f -", functionManifest("sink", `module.exports = { main: () => "" };`));
  const subscription = {
    apiVersion: "eventing.kyma-project.io/v1alpha2",
    kind: "Subscription",
    metadata: { name: "orders" },
    spec: {
      sink: "http://sink.default.svc.cluster.local",
      source: "shop",
      types: ["order.created.v1"],
    },
  };
  await platform.k("apply -f -", JSON.stringify(subscription));
  await platform.k("wait --for=condition=Running function/sink --timeout=120s");
  await platform.k("wait --for=jsonpath={.status.ready}=true subscription/orders --timeout=60s");
}, 180_000);
afterAll(async () => {
  await platform.remove();
  collector.close();
  collector.closeAllConnections();
});

test("the spans of publishing, the wait, the delivery and the Function are of the publisher's trace", async () => {
  const response = await fetch(`${platform.endpoints.publisher}/publish`, {
    method: "POST",
    headers: {
      "content-type": "application/cloudevents+json",
      traceparent: `00-${trace}-${publisherSpan}-01`,
    },
    body: `{"specversion":"1.0","id":"1","source":"shop","type":"order.created.v1","data":{}}`,
  });
  expect(response.status).toBe(204);
  const ofTrace = () => spans.filter(({ traceId }) => traceId === trace);
  await untilTrue("four spans", async () => ofTrace().length >= 4, 60_000);
  const named = (start: string) => ofTrace().find(({ name }) => name.startsWith(start));
  const ofEvents = ["publish order.created.v1", "wait in the queue", "deliver order.created.v1"];
  for (const name of ofEvents) expect(named(name)?.parentSpanId).toBe(publisherSpan);
  const ofFunction = ofTrace().filter(({ service }) => service === "sink");
  expect(ofFunction.map(({ parentSpanId }) => parentSpanId)).toEqual([named("deliver")?.spanId]);
}, 120_000);
