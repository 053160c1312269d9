import { once } from "node:events";
import * as http from "node:http";
import { type ServerResponse } from "node:http";
import { domainMappings, knative } from "@spry/function";
import { resources } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Bench, bodyOf, type PodHandler, startBench } from "./testing/bench.ts";
import { defineKnative } from "./testing/knative.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await startBench({ withKnative: true });
});
afterEach(() => bench.close());

/** A Revision with a Pod that responds with its name. */
async function revision(name: string, spec = {}, handler?: PodHandler) {
  const pod = await bench.pod(handler ?? ((_, response) => response.end(name)));
  await bench.knative.revision(name, spec);
  await bench.revisionPods(name, [pod]);
  return pod;
}

const callMany = async (count: number, options = {}): Promise<Record<string, number>> => {
  const bodies: Record<string, number> = {};
  for (let i = 0; i < count; i++) {
    const { body } = await bench.call(options);
    bodies[body] = (bodies[body] ?? 0) + 1;
  }
  return bodies;
};

describe("a Route", () => {
  test.each(["hello.default.localhost", "hello.default.svc.cluster.local", "hello.default.svc"])(
    "leads %s to its Revision",
    async (host) => {
      await revision("hello-00001");
      await bench.knative.route("hello", [{ revisionName: "hello-00001", percent: 100 }]);
      await bench.heard();
      expect(await bench.call({ host })).toMatchObject({ status: 200, body: "hello-00001" });
    },
  );

  test("splits requests by percent, and gives 0 % to hosts with the tag only", async () => {
    for (const name of ["a", "b", "c"]) await revision(name);
    await bench.knative.route("hello", [
      { revisionName: "a", percent: 50 },
      { revisionName: "b", percent: 50 },
      { revisionName: "c", percent: 0, tag: "next" },
    ]);
    await bench.heard();
    expect(await callMany(200)).toEqual({ a: 100, b: 100 });
    expect(await callMany(3, { host: "next-hello.default.localhost" })).toEqual({ c: 3 });
  });

  test("leads to a tag that a header names, where its status allows that", async () => {
    for (const name of ["a", "b"]) await revision(name);
    const headers = { "knative-serving-tag": "next" };
    await bench.knative.route("hello", [
      { revisionName: "a", percent: 100 },
      { revisionName: "b", percent: 0, tag: "next" },
    ]);
    await bench.heard();
    expect(await callMany(2, { headers })).toEqual({ a: 2 });
    await bench.knative.routeStatus("hello", {
      annotations: { "serving.spry.io/tag-header": "true" },
    });
    await bench.heard();
    expect(await callMany(2, { headers })).toEqual({ b: 2 });
    expect(await callMany(2, { headers: { "knative-serving-tag": "none" } })).toEqual({ a: 2 });
    expect(await callMany(2)).toEqual({ a: 2 });
  });

  test("has the host of its URL, in whatever domain, and its tags have theirs", async () => {
    for (const name of ["a", "b"]) await revision(name);
    const host = "hello.default.example.com";
    await bench.knative.route("hello", [
      { revisionName: "a", percent: 100 },
      { revisionName: "b", percent: 0, tag: "next", url: `http://next-${host}:8080` },
    ]);
    await bench.heard();
    expect((await bench.call({ host })).status).toBe(404);
    await bench.knative.routeStatus("hello", { url: `http://${host}:8080` });
    await bench.heard();
    expect(await callMany(2, { host })).toEqual({ a: 2 });
    expect(await callMany(2, { host: `next-${host}:8080` })).toEqual({ b: 2 });
  });

  test("has the hosts of DomainMappings that have been granted", async () => {
    await revision("a");
    await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
    const granted = async (host: string, status: "True" | "False") => {
      const metadata = { name: host, namespace: "default" };
      await bench.client.create(domainMappings, {
        metadata,
        spec: { ref: { kind: "Service", name: "hello" } },
      });
      const conditions = ["DomainClaimed", "ReferenceResolved"].map((type) => ({ type, status }));
      const target = { ...metadata };
      await bench.client.patch(
        domainMappings,
        target,
        { status: { conditions } },
        { subresource: "status" },
      );
    };
    await granted("shop.example.com", "True");
    await granted("other.example.com", "False");
    // A host of this form is that of the Service it names, even if another object maps it.
    await granted("bank.default.localhost", "True");
    await bench.heard();
    const statuses = [];
    for (const host of ["shop.example.com", "other.example.com", "bank.default.localhost"])
      statuses.push((await bench.call({ host })).status);
    expect(statuses).toEqual([200, 404, 404]);
  });

  test("keeps exact shares while its status changes otherwise", async () => {
    for (const name of ["a", "b"]) await revision(name);
    const traffic = [
      { revisionName: "a", percent: 90 },
      { revisionName: "b", percent: 10 },
    ];
    const counts: Record<string, number> = {};
    for (let i = 0; i < 5; i++) {
      await bench.knative.route("hello", [...traffic]);
      const status = { observedGeneration: i };
      const target = { name: "hello", namespace: "default" };
      await bench.client.patch(knative.routes, target, { status }, { subresource: "status" });
      await bench.heard();
      for (const [body, n] of Object.entries(await callMany(4))) {
        counts[body] = (counts[body] ?? 0) + n;
      }
    }
    expect(counts).toEqual({ a: 18, b: 2 });
  });

  test("that is cluster-local has no host outside", async () => {
    await revision("a");
    await bench.knative.route("hello", [{ revisionName: "a", percent: 100, tag: "t" }], {
      "networking.knative.dev/visibility": "cluster-local",
    });
    await bench.heard();
    // A client may write any Host: an internal name does not make a client internal.
    for (const host of [
      "hello.default.localhost",
      "t-hello.default.localhost",
      "hello.default.svc.cluster.local",
      "hello.default.svc",
      "t-hello.default.svc",
      "HELLO.default.svc.cluster.local.:80",
    ])
      expect(await bench.call({ host }), host).toMatchObject({
        status: 404,
        headers: { "x-spry-reason": "FunctionNotFound" },
      });
    const target = "GET http://hello.default.svc/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    expect(await bench.exchange(target)).toMatch(/^HTTP\/1.1 404 /);
  });

  test("without traffic keeps requests until it has some", async () => {
    await bench.knative.route("hello", []);
    await bench.heard();
    const pending = bench.call();
    await revision("a");
    await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
    expect(await pending).toMatchObject({ status: 200, body: "a" });
  });

  test("that has been deleted is not found", async () => {
    await revision("a");
    await bench.knative.route("hello", [{ revisionName: "a", percent: 100, tag: "t" }]);
    await bench.heard();
    expect((await bench.call()).status).toBe(200);
    await bench.client.delete(knative.routes, { name: "hello", namespace: "default" });
    await bench.heard();
    expect((await bench.call()).status).toBe(404);
    expect((await bench.call({ host: "t-hello.default.localhost" })).status).toBe(404);
  });

  test("changes from blue to green while requests flow, and none fails", async () => {
    await revision("blue");
    await revision("green");
    await bench.knative.route("hello", [{ revisionName: "blue", percent: 100 }]);
    await bench.heard();
    const failures: unknown[] = [];
    const seen = new Set<string>();
    const over = new AbortController();
    const client = async () => {
      while (!over.signal.aborted) {
        const response = await bench.call({ method: "POST", body: "x" });
        if (response.status !== 200) failures.push(response);
        seen.add(response.body);
      }
    };
    const clients = Array.from({ length: 4 }, client);
    for (let i = 0; i < 20; i++) {
      const name = i % 2 === 0 ? "green" : "blue";
      await bench.knative.route("hello", [{ revisionName: name, percent: 100 }]);
      await bench.heard();
    }
    over.abort();
    await Promise.all(clients);
    expect(failures).toEqual([]);
    expect([...seen].sort()).toEqual(["blue", "green"]);
  });

  test("moves requests that wait for a Revision when its traffic goes elsewhere", async () => {
    await bench.knative.revision("a");
    await revision("b");
    await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
    await bench.heard();
    const pending = bench.call();
    await bench.heard();
    await bench.knative.route("hello", [{ revisionName: "b", percent: 100 }]);
    expect(await pending).toMatchObject({ status: 200, body: "b" });
  });
});

describe("a request whose Route changes while it is on its way", () => {
  /** Sends half of a small body; the rest comes later. */
  async function half() {
    const request = http.request({
      host: "127.0.0.1",
      port: bench.port,
      method: "POST",
      agent: false,
      headers: { host: "hello.default.localhost", "content-length": 4 },
    });
    request.write("bo");
    await bench.heard();
    return async () => {
      request.end("dy");
      const [response] = (await once(request, "response")) as [http.IncomingMessage];
      return `${response.statusCode} ${(await bodyOf(response)).toString()}`;
    };
  }

  test.each([true, false])(
    "goes to the Revision that it leads to now (Pods before: %s)",
    async (hasPods) => {
      if (hasPods) await revision("a");
      else await bench.knative.revision("a");
      await revision("b");
      await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
      await bench.heard();
      const finish = await half();
      await bench.knative.route("hello", [{ revisionName: "b", percent: 100 }]);
      await bench.heard();
      expect(await finish()).toBe("200 b");
    },
  );

  test("goes to the Revision when its Service has lost selector and Pods", async () => {
    const pod = await bench.pod((_, response) => response.end("deployment"));
    await bench.service();
    const target = { name: "hello", namespace: "default" };
    await bench.client.patch(resources.services, target, { spec: { selector: { app: "x" } } });
    await bench.endpoints([pod]);
    await revision("a");
    await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
    await bench.heard();
    const finish = await half();
    await bench.client.patch(resources.services, target, { spec: { selector: null } });
    await bench.endpoints([]);
    expect(await finish()).toBe("200 a");
  });

  test("goes to the Revision when it waited for a place at its Service's Pods", async () => {
    await bench.close();
    bench = await startBench({ withKnative: true, maxConcurrency: 1 });
    const held: ServerResponse[] = [];
    const pod = await bench.pod((_, response) => void held.push(response));
    await bench.service();
    const target = { name: "hello", namespace: "default" };
    await bench.client.patch(resources.services, target, { spec: { selector: { app: "x" } } });
    await bench.endpoints([pod]);
    await revision("a");
    await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
    await bench.heard();
    const first = bench.call();
    await expect.poll(() => held.length).toBe(1);
    const second = bench.call();
    await bench.heard();
    await bench.client.patch(resources.services, target, { spec: { selector: null } });
    expect(await second).toMatchObject({ status: 200, body: "a" });
    held[0]?.end("deployment");
    expect(await first).toMatchObject({ status: 200, body: "deployment" });
  });
});

describe("a Function changes between the two ways of serving", () => {
  const target = { name: "hello", namespace: "default" };
  const select = (selector: object | null) =>
    bench.client.patch(resources.services, target, { spec: { selector } });

  test("by its Service's selector, and back, and no request fails", async () => {
    const pod = await bench.pod((_, response) => response.end("deployment"));
    await bench.service();
    await select({ app: "hello" });
    await bench.endpoints([pod]);
    await revision("hello-00001");
    await bench.knative.route("hello", [{ revisionName: "hello-00001", percent: 100 }]);
    await bench.heard();
    expect((await bench.call()).body).toBe("deployment");
    await select(null);
    await bench.heard();
    expect((await bench.call()).body).toBe("hello-00001");
    await bench.endpoints([]);
    expect((await bench.call()).body).toBe("hello-00001");
    // Back: it has the selector a while before its Pods are known.
    await select({ app: "hello" });
    await bench.heard();
    expect((await bench.call()).body).toBe("hello-00001");
    await bench.endpoints([pod]);
    expect((await bench.call()).body).toBe("deployment");
  });

  test("and what waits for its Pods goes on to its Revision", async () => {
    await bench.fn([{ type: "BuildReady", status: "Unknown", reason: "JobRunning", message: "" }]);
    await bench.service();
    const pending = bench.call();
    await bench.heard();
    await revision("hello-00001");
    await bench.knative.route("hello", [{ revisionName: "hello-00001", percent: 100 }]);
    expect((await pending).body).toBe("hello-00001");
  });

  test("and the slices that lead callers to the gateway are never routed by", async () => {
    const trap = await bench.pod((_, response) => response.end("trap"));
    await bench.service();
    await bench.endpoints([trap]);
    const { items } = await bench.client.list(resources.endpointSlices);
    const { metadata } = items[0] ?? {};
    const labels = { "endpointslice.kubernetes.io/managed-by": "gateway.serving.spry" };
    const slice = { name: metadata?.name ?? "", namespace: "default" };
    await bench.client.patch(resources.endpointSlices, slice, { metadata: { labels } });
    await bench.heard();
    expect((await bench.call()).status).toBe(503);
    expect(trap.seen).toEqual([]);
  });
});

describe("a Revision's time limits", () => {
  test.each([
    ["timeoutSeconds", { timeoutSeconds: 1 }, false],
    ["responseStartTimeoutSeconds", { responseStartTimeoutSeconds: 1, timeoutSeconds: 9 }, false],
    ["idleTimeoutSeconds before a response", { idleTimeoutSeconds: 1 }, false],
    ["idleTimeoutSeconds after a response has begun", { idleTimeoutSeconds: 1 }, true],
  ])("%s ends a request", async (_, spec, begins) => {
    const held: ServerResponse[] = [];
    await revision("a", spec, (_, response) => {
      held.push(response);
      if (begins) response.write("begun");
    });
    await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
    await bench.heard();
    if (begins) return await expect(bench.call()).rejects.toThrow();
    expect(await bench.call()).toMatchObject({
      status: 504,
      headers: { "x-spry-reason": "UpstreamTimeout" },
      body: "Revision default/a exceeded its time limit (1 s)\n",
    });
  });

  test.each([
    ["responseStartTimeoutSeconds", { responseStartTimeoutSeconds: 1 }],
    // TestRevisionTimeout of Knative's own suite, "writes first byte before timeout".
    ["timeoutSeconds", { timeoutSeconds: 1 }],
  ])("%s does not end a response that has begun", async (_, spec) => {
    await revision("a", spec, (_request, response) => {
      response.write("be");
      setTimeout(() => response.end("gun"), 1_200);
    });
    await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
    await bench.heard();
    expect((await bench.call()).body).toBe("begun");
  });
});

describe("headers of Knative", () => {
  test.each([
    ["activator", 200, "activator"],
    ["probe", 200, "probe"],
    ["queue", 400, 'unexpected probe header value: "queue"\n'],
  ])("K-Network-Probe: %s is answered with %d, and no Pod sees it", async (value, status, body) => {
    const pod = await revision("a");
    await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
    await bench.heard();
    const response = await bench.call({ headers: { "k-network-probe": value } });
    expect(response).toMatchObject({ status, body });
    expect(pod.seen).toEqual([]);
  });

  test("that components use among themselves are not taken from clients", async () => {
    const pod = await revision("a");
    await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
    await bench.heard();
    await bench.call({ headers: { "Knative-Serving-Revision": "b", "X-Mine": "1" } });
    expect(pod.seen[0]?.headers).toMatchObject({ "x-mine": "1", "x-forwarded-proto": "http" });
    expect(pod.seen[0]?.headers).not.toHaveProperty("knative-serving-revision");
  });
});

test("Routes count from the moment that their definition is there", async () => {
  await bench.close();
  bench = await startBench();
  expect((await bench.call()).status).toBe(404);
  await defineKnative(bench.client);
  await revision("a");
  await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
  await expect.poll(async () => (await bench.call()).status, { timeout: 5_000 }).toBe(200);
});

test("what changed while the API server was away counts afterwards", async () => {
  await revision("a");
  await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
  await bench.heard();
  bench.network.cut();
  await revision("b");
  await bench.knative.route("hello", [{ revisionName: "b", percent: 100 }]);
  expect((await bench.call()).body).toBe("a");
  bench.network.restore();
  await expect.poll(async () => (await bench.call()).body, { timeout: 5_000 }).toBe("b");
});
