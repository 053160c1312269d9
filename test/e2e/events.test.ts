/** Events on a whole platform: published outside and by Functions, delivered to Functions, through crashes. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Platform, run } from "../support/platform.ts";
import { untilTrue } from "../support/until-true.ts";

const platform = new Platform();
const patienceMs = 60_000;
const until = (what: string, ask: () => Promise<boolean>) => untilTrue(what, ask, patienceMs);
const minutes = (count: number) => count * 60_000;

/** Passes on what it has got, and says so once that is known outside. */
const counter = `
module.exports = { main: async (event) => {
  const said = [event["ce-id"], event["ce-type"], JSON.stringify(event.data)].join(" ");
  const { ok } = await fetch(process.env.COUNTER_URL, { method: "POST", body: said });
  if (!ok) throw new Error("not counted");
} };`;

/** What the Function has handled. */
const handled: string[] = [];
const ids = () => new Set(handled.map((line) => line.split(" ")[0]));
const counting = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
  request.on("end", () => {
    handled.push(body);
    response.end();
  });
});

const emitter = `
module.exports = { main: async (event) => {
  const { status } = await event.emitCloudEvent("order.created.v1", "shop", { from: "function" }, { id: event.extensions.request.query.id });
  return { status };
} };`;

const functionOf = (name: string, runtime: string, source: string, env: object[] = []) => ({
  apiVersion: "serverless.kyma-project.io/v1alpha2",
  kind: "Function",
  metadata: { name },
  spec: { runtime, env, source: { inline: { source } } },
});
const subscriptionOf = (name: string, spec: object) => ({
  apiVersion: "eventing.kyma-project.io/v1alpha2",
  kind: "Subscription",
  metadata: { name },
  spec,
});
const sinkOf = (name: string) => `http://${name}.default.svc.cluster.local`;

async function apply(...objects: object[]): Promise<void> {
  const items = { apiVersion: "v1", kind: "List", items: objects };
  await platform.k("apply -f -", JSON.stringify(items));
}

const publish = async (id: string, body: object = {}, type = "order.created.v1") =>
  fetch(`${platform.endpoints.publisher}/publish`, {
    method: "POST",
    headers: { "content-type": "application/cloudevents+json" },
    body: JSON.stringify({ specversion: "1.0", id, source: "shop", type, data: body }),
  });

/** A command that has to work. */
async function spry(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await platform.spry(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

beforeAll(async () => {
  await platform.start();
  await new Promise<void>((resolve) => counting.listen(0, "0.0.0.0", resolve));
  const { port } = counting.address() as AddressInfo;
  const url = { name: "COUNTER_URL", value: `http://${platform.hostAddress}:${port}` };
  await apply(
    functionOf("counter", "nodejs24", counter, [url]),
    functionOf("emitter", "nodejs24", emitter),
    subscriptionOf("orders", {
      sink: sinkOf("counter"),
      source: "shop",
      types: ["order.created.v1"],
    }),
  );
  await platform.k("wait --for=condition=Running function/counter function/emitter --timeout=120s");
  await platform.k("wait --for=jsonpath={.status.ready}=true subscription/orders --timeout=60s");
}, minutes(3));
afterAll(async () => {
  await platform.remove();
  counting.close();
  counting.closeAllConnections();
});

test("an event is delivered to the Function of a Subscription", async () => {
  expect((await publish("first", { n: 1 })).status).toBe(204);
  await until("the event has been handled", async () => ids().has("first"));
  expect(handled).toEqual([`first order.created.v1 {"n":1}`]);
});

test("a Function publishes with emitCloudEvent", async () => {
  const { body } = await platform.call("emitter.default", { path: "/?id=emitted" });
  expect(JSON.parse(body)).toEqual({ status: 204 });
  await until("the emitted event has been handled", async () => ids().has("emitted"));
});

test("kubectl shows Subscriptions as the original does", async () => {
  const [head, row] = (await platform.k("get subscriptions")).trim().split("\n");
  expect(head?.split(/\s+/)).toEqual(["NAME", "READY", "AGE"]);
  expect(row?.split(/\s+/).slice(0, 2)).toEqual(["orders", "true"]);
  await apply(subscriptionOf("wrong", { sink: sinkOf("nothing"), source: "shop", types: ["a.b"] }));
  await platform.k("wait --for=jsonpath={.status.ready}=false subscription/wrong --timeout=30s");
  const condition = `-o jsonpath={.status.conditions[0].message}`;
  expect(await platform.k(`get subscription wrong ${condition}`)).toBe(
    "Subscription validation failed: Sink validation failed: service nothing.default not found in the cluster",
  );
});

test("an event that a sink refuses becomes a dead letter: shown, redriven, discarded", async () => {
  const refuser = `
const seen = new Set();
module.exports = { main: (event) => {
  if (seen.has(event["ce-id"])) return "fine";
  if (event.data?.once) seen.add(event["ce-id"]);
  throw new Error("refused");
} };`;
  await apply(
    functionOf("refuser", "nodejs24", refuser),
    subscriptionOf("refused", {
      sink: sinkOf("refuser"),
      source: "shop",
      types: ["refuse.v1"],
      delivery: { maxAttempts: 1 },
    }),
  );
  await platform.k("wait --for=condition=Running function/refuser --timeout=120s");
  await platform.k("wait --for=jsonpath={.status.ready}=true subscription/refused --timeout=60s");
  const publishing = ["events", "publish", "--type", "refuse.v1", "--source", "shop"];
  // JavaScript would write these numbers in another way.
  const exact = `{"n":12345678901234567890,"f":1.10,"o":{"b":1,"1":3}}`;
  await spry(...publishing, "--id", "never", "-d", exact);
  await spry(...publishing, "--id", "later", "-d", `{"once":true}`);
  const letters = async () =>
    JSON.parse(await spry("dlq", "list", "refused", "-o", "json")) as {
      id: number;
      event: { id: string };
    }[];
  await until("two dead letters", async () => (await letters()).length === 2);
  const all = await letters();
  const idOf = (id: string) => String(all.find(({ event }) => event.id === id)?.id);
  const shown = await spry("dlq", "show", "refused", idOf("never"));
  expect(shown.replaceAll(/\s/g, "")).toContain(`"data":${exact}`);
  const listed = await spry("dlq", "list", "refused", "-o", "json");
  expect(listed.replaceAll(/\s/g, "")).toContain(`"data":${exact}`);
  expect(JSON.parse(shown)).toMatchObject({
    attempts: 1,
    reason: "AttemptsExhausted",
    message: expect.stringMatching(
      /^attempt 1 of 1: HTTP 500: Internal server error \(request [-\da-f]{36}\)$/,
    ),
    event: { type: "refuse.v1", source: "shop", data: { f: 1.1 } },
  });
  expect(await spry("dlq", "list", "refused")).toMatch(
    / AttemptsExhausted: attempt 1 of 1: HTTP 500: Error: refused$/m,
  );
  expect(await spry("dlq", "redrive", "refused", idOf("later"))).toBe("1 delivered again\n");
  await until("the redriven one has been handled", async () =>
    /^refused +0 +0 +0 +1 /m.test(await spry("events", "list")),
  );
  expect(await spry("dlq", "discard", "refused", "--all")).toBe("1 discarded\n");
  expect(await spry("dlq", "list", "refused")).toBe("no dead letters of Subscription refused\n");
  const tailed = await spry("events", "tail", "--once", "--type", "refuse.v1");
  expect(tailed.trim().split("\n")).toHaveLength(2);
  expect(tailed).toContain(`"data":${exact}`);
  const events = await platform.k("get events --field-selector reason=DeadLetter");
  expect(events).toContain("subscription/refused");
}, 180_000);

test("events are delivered again from a time on", async () => {
  const before = handled.length;
  await spry("events", "replay", "orders", "--from", "1h");
  await until("earlier events again", async () => handled.length >= before + 2);
  expect(handled.filter((line) => line.startsWith("first "))).toHaveLength(2);
});

test("the administration is for those who may have the contents", async () => {
  const ask = async (path: string, token?: string) => {
    const authorization = token === undefined ? [] : ["-H", `Authorization: Bearer ${token}`];
    const url = `${platform.endpoints.events}${path}`;
    const { stdout } = await run("curl", [
      "-sk",
      "-w",
      "%{http_code}",
      "-o",
      "/dev/null",
      url,
      ...authorization,
    ]);
    return Number(stdout);
  };
  const path = "/v1/namespaces/default/subscriptions/orders/deadletters";
  expect(await ask(path)).toBe(401);
  expect(await ask(path, "not.a.token")).toBe(401);
  await platform.k("create serviceaccount auditor");
  const token = (await platform.k("create token auditor")).trim();
  expect(await ask(path, token)).toBe(403);
  await platform.k(
    "create rolebinding auditor --clusterrole=edit --serviceaccount=default:auditor",
  );
  await until("the right counts", async () => (await ask(path, token)) === 200);
  expect(await ask("/v1/events", token)).toBe(403);
});

test("a Subscription of v1alpha1 is one of v1alpha2, and back", async () => {
  const part = (property: string, value: string) => ({ property, type: "exact", value });
  const type = "sap.kyma.custom.shop.order.paid.v1";
  await apply({
    apiVersion: "eventing.kyma-project.io/v1alpha1",
    kind: "Subscription",
    metadata: { name: "older" },
    spec: {
      sink: sinkOf("counter"),
      protocol: "",
      filter: { filters: [{ eventSource: part("source", ""), eventType: part("type", type) }] },
    },
  });
  await platform.k("wait --for=jsonpath={.status.ready}=true subscription/older --timeout=60s");
  const newer = "{.spec.types}/{.spec.typeMatching}";
  expect(await platform.k(`get subscription older -o jsonpath=${newer}`)).toBe(`["${type}"]/exact`);
  const older = "{.spec.filter.filters[0].eventType.value}";
  const name = "subscriptions.v1alpha1.eventing.kyma-project.io";
  expect(await platform.k(`get ${name} older -o jsonpath=${older}`)).toBe(type);
  expect((await publish("paid", {}, "order.paid.v1")).status).toBe(204);
  await until("the event has been handled", async () => ids().has("paid"));
});

test("a Function of the publisher's name takes its place, which it has again when that is deleted", async () => {
  const system = "kyma-system";
  const name = "eventing-publisher-proxy";
  const standIn = functionOf(
    name,
    "nodejs24",
    `module.exports = { main: (event) => { event.setResponseStatus(201); return ""; } };`,
  );
  const emitted = async (id: string) =>
    (await platform.call("late.default", { path: `/?id=${id}` })).body;
  await apply({ ...standIn, metadata: { name, namespace: system } });
  await platform.k(`wait --for=condition=Running function/${name} -n ${system} --timeout=120s`);
  // One that has published before keeps its connection to the publisher that it knows.
  await apply(functionOf("late", "nodejs24", emitter));
  await platform.k("wait --for=condition=Running function/late --timeout=120s");
  await until("the Function gets events", async () => (await emitted("taken")).includes("201"));
  await platform.k(`delete function ${name} -n ${system}`);
  await until("the publisher is back", async () => (await emitted("back")).includes("204"));
  await until("its events are handled", async () => ids().has("back"));
  // The Function's Service is deleted after the Function.
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const owners = "-o jsonpath={.metadata.ownerReferences}";
  expect(await platform.k(`get service ${name} -n ${system} ${owners}`)).toBe("");
  expect(await emitted("stays")).toContain("204");
});

test(
  "nothing that was accepted is lost when every process is killed",
  async () => {
    const accepted: string[] = [];
    const over = new AbortController();
    const publishing = (async () => {
      for (let n = 0; !over.signal.aborted; n++) {
        const id = `k${n}`;
        const { status } = await publish(id).catch(() => ({ status: 0 }));
        if (status === 204) accepted.push(id);
        else await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    await until("events are accepted", async () => accepted.length > 100);
    const state = readFileSync(path.join(platform.dataDir, "gateway.json"), "utf8");
    const { pid: gateway } = JSON.parse(state) as { pid: number };
    process.kill(gateway, "SIGKILL");
    const before = accepted.length;
    await until(
      "events are accepted again after the gateway's end",
      async () => accepted.length > before + 100,
    );
    await platform.crash();
    const after = accepted.length;
    await until(
      "events are accepted again after the platform's end",
      async () => accepted.length > after + 100,
    );
    over.abort();
    await publishing;
    await until("all accepted events have been handled", async () => {
      const all = ids();
      return accepted.every((id) => all.has(id));
    });
    const twice = handled.length - ids().size;
    // Of the ten that were on their way when the gateway was killed.
    expect(twice).toBeLessThanOrEqual(20);
  },
  minutes(4),
);
