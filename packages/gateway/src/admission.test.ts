/** Hard limits of Revisions with several gateways, on a real API server. What `kill -9` does is in test/e2e/hard-limits.full.test.ts. */
import { once } from "node:events";
import * as http2 from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { KubeClient, resources } from "@spry/kube";
import { freePort } from "@spry/test-kit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { admissionLeaseName } from "./admission/admission.ts";
import { createGateway } from "./gateway.ts";
import {
  type Answered,
  type Bench,
  callGateway,
  countsToken,
  startBench,
} from "./testing/bench.ts";

interface Member {
  port: number;
  /** From the API server. */
  cut(): void;
  restore(): void;
  close(): Promise<void>;
}

let bench: Bench;
const members: Member[] = [];
const leaseMs = 1_900;

beforeEach(async () => {
  bench = await startBench({ withKnative: true });
});

/** A Revision with one request at a time for each Pod. */
async function limited(timeoutSeconds = 60): Promise<void> {
  await bench.knative.revision("limited", { containerConcurrency: 1, timeoutSeconds });
  await bench.knative.route("hello", [{ revisionName: "limited", percent: 100 }]);
}
afterEach(async () => {
  for (const member of members.splice(0)) await member.close();
  await bench.close();
});

async function join(): Promise<Member> {
  const [port, admin] = [await freePort(), await freePort()];
  const cutOff = new Set<string>();
  let abort = new AbortController();
  const transport = bench.apiTransport;
  const client = new KubeClient(async (request) => {
    if (cutOff.size > 0) throw new Error("connect ECONNREFUSED");
    const signal = AbortSignal.any([request.signal, abort.signal]);
    return transport(new Request(request, { signal }));
  });
  const gateway = createGateway({
    client,
    drainMs: 500,
    countsToken: () => countsToken,
    admission: {
      namespace: "default",
      front: `127.0.0.1:${port}`,
      admin: `127.0.0.1:${admin}`,
      leaseDurationMs: leaseMs,
    },
  });
  const administration = await gateway.listenAdmin({ host: "127.0.0.1", port: admin });
  const front = await gateway.listen({ host: "127.0.0.1", port });
  await gateway.ready;
  let closing: Promise<void> | undefined;
  const member: Member = {
    port,
    cut() {
      cutOff.add("api");
      abort.abort(new Error("read ECONNRESET"));
    },
    restore() {
      abort = new AbortController();
      cutOff.clear();
    },
    close: () =>
      (closing ??= (async () => {
        await front.close();
        await administration.close();
      })()),
  };
  members.push(member);
  return member;
}

/** Until the gateway that admits has written down that so many others know what it has under way. */
const known = (count: number) =>
  expect
    .poll(
      async () => {
        const lease = await bench.client.get(resources.leases, {
          namespace: "default",
          name: admissionLeaseName,
        });
        const { "serving.spry.io/admission": text = "{}" } = lease.metadata.annotations ?? {};
        return (JSON.parse(text) as { witnesses?: string[] }).witnesses?.length;
      },
      { timeout: 10_000 },
    )
    .toBe(count);

/** A Pod that counts what it has at a time. */
async function countingPod(ms = 10) {
  const seen = { now: 0, most: 0, all: 0 };
  const pod = await bench.pod((_request, response) => {
    seen.all++;
    seen.most = Math.max(seen.most, ++seen.now);
    setTimeout(() => {
      seen.now--;
      response.end("done");
    }, ms);
  });
  return { pod, seen };
}

const ask = ({ port }: Member): Promise<Answered> =>
  callGateway(port, { host: "hello.default.localhost" });

/** Requests through gateways by turns, so many at a time, until `isOver`; what went wrong, and how many went well. */
async function load(ports: Member[], isOver: () => boolean, atATime = 8) {
  const failures: string[] = [];
  let answered = 0;
  const one = async (n: number) => {
    for (let i = n; !isOver(); i++) {
      const to = ports[i % ports.length]!;
      const { status, body } = await ask(to).catch((error: Error) => ({
        status: 0,
        body: error.message,
      }));
      if (status === 200) answered++;
      else failures.push(`${status} ${body}`);
    }
  };
  await Promise.all(Array.from({ length: atATime }, (_, n) => one(n)));
  return { failures, answered };
}

test("two gateways keep a limit of one request for each Pod together", async () => {
  await limited();
  const [a, b] = [await join(), await join()];
  const pods = [await countingPod(), await countingPod()];
  await bench.revisionPods(
    "limited",
    pods.map(({ pod }) => pod),
  );
  const end = performance.now() + 1_500;
  const { failures, answered } = await load([a, b], () => performance.now() > end);
  expect(failures).toEqual([]);
  expect(pods.map(({ seen }) => seen.most)).toEqual([1, 1]);
  expect(pods[0]!.seen.all + pods[1]!.seen.all).toBe(answered);
  expect(answered).toBeGreaterThan(20);
});

test("a gateway that is closed, and one that joins, change nothing about the limit", async () => {
  await limited();
  const [a, b] = [await join(), await join()];
  const { pod, seen } = await countingPod(5);
  await bench.revisionPods("limited", [pod]);
  let isOver = false;
  const loading = load([b], () => isOver);
  await expect.poll(() => seen.all, { timeout: 5_000 }).toBeGreaterThan(20);
  await known(1);
  await a.close();
  const before = seen.all;
  await expect.poll(() => seen.all, { timeout: 10_000 }).toBeGreaterThan(before + 20);
  const c = await join();
  await known(1);
  await b.close();
  isOver = true;
  const { failures } = await loading;
  expect(failures.filter((each) => !/ECONNREFUSED|ECONNRESET|socket hang up/.test(each))).toEqual(
    [],
  );
  await expect.poll(async () => (await ask(c)).status, { timeout: 10_000 }).toBe(200);
  expect(seen.most).toBe(1);
});

test("a gateway that is cut off from the API server stops admitting before another begins", async () => {
  await limited();
  const [a, b] = [await join(), await join()];
  const { pod, seen } = await countingPod(20);
  await bench.revisionPods("limited", [pod]);
  expect((await ask(a)).status).toBe(200);
  let isOver = false;
  const loading = [a, b].map((each) => load([each], () => isOver, 4));
  await expect.poll(() => seen.all).toBeGreaterThan(20);
  await known(1);
  a.cut();
  await new Promise((resolve) => setTimeout(resolve, leaseMs));
  const before = seen.all;
  await expect.poll(() => seen.all, { timeout: 10_000 }).toBeGreaterThan(before + 10);
  a.restore();
  isOver = true;
  expect((await Promise.all(loading)).flatMap(({ failures }) => failures)).toEqual([]);
  expect(seen.most).toBe(1);
}, 30_000);

test("a successor that knows nothing of its predecessor takes every place for taken, for the Revision's time", async () => {
  await limited(4);
  const a = await join();
  const { pod, seen } = await countingPod(5);
  await bench.revisionPods("limited", [pod]);
  expect((await ask(a)).status).toBe(200);
  a.cut();
  const begin = performance.now();
  const b = await join();
  await new Promise((resolve) => setTimeout(resolve, leaseMs));
  await expect.poll(async () => (await ask(b)).status, { timeout: 15_000 }).toBe(200);
  expect(performance.now() - begin).toBeGreaterThan(4_000);
  expect(seen.all).toBe(2);
  a.restore();
}, 30_000);

test("after one that has ended with nothing under way, nothing is taken for taken", async () => {
  await limited();
  const a = await join();
  const { pod } = await countingPod(5);
  await bench.revisionPods("limited", [pod]);
  expect((await ask(a)).status).toBe(200);
  await a.close();
  const b = await join();
  const begin = performance.now();
  expect((await ask(b)).status).toBe(200);
  expect(performance.now() - begin).toBeLessThan(10_000);
}, 30_000);

test("a WebSocket through a gateway that does not admit takes its place until it ends", async () => {
  await limited();
  const [a, b] = [await join(), await join()];
  const { pod, seen } = await countingPod(1);
  pod.server.on("upgrade", (_request, socket) => {
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nupgrade: test\r\nconnection: Upgrade\r\n\r\n",
    );
    socket.pipe(socket);
  });
  await bench.revisionPods("limited", [pod]);
  expect((await ask(a)).status).toBe(200);
  const socket = connect(b.port, "127.0.0.1");
  socket.write(
    "GET / HTTP/1.1\r\nhost: hello.default.localhost\r\nupgrade: test\r\nconnection: Upgrade\r\n\r\n",
  );
  await new Promise((resolve) => socket.once("data", resolve));
  const waiting = [ask(a), ask(b)];
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(seen.all).toBe(1);
  const echoed = new Promise<string>((resolve) =>
    socket.once("data", (chunk: Buffer) => resolve(chunk.toString())),
  );
  socket.write("still there");
  expect(await echoed).toBe("still there");
  socket.destroy();
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
});

test("a call of gRPC through a gateway that does not admit has its trailers, and its place", async () => {
  await bench.knative.revision("limited", { containerConcurrency: 1, timeoutSeconds: 60 });
  await bench.knative.route("hello", [{ revisionName: "limited", percent: 100 }]);
  const [a, b] = [await join(), await join()];
  const seen = { now: 0, most: 0 };
  const pod = http2.createServer();
  pod.on("stream", (stream) => {
    seen.most = Math.max(seen.most, ++seen.now);
    stream.on("error", () => {});
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.once("close", () => seen.now--);
    setTimeout(() => stream.end("paid"), 50);
  });
  pod.listen(0, "127.0.0.1");
  await once(pod, "listening");
  await bench.knative.h2cPods("limited", "127.0.0.1", (pod.address() as AddressInfo).port);
  const sessions = [a, b].map(({ port }) => http2.connect(`http://127.0.0.1:${port}`));
  const pay = async (session: http2.ClientHttp2Session) => {
    const stream = session.request({
      ":method": "POST",
      ":path": "/shop.Till/Pay",
      ":authority": "hello.default.localhost",
      "content-type": "application/grpc",
      te: "trailers",
    });
    let status: unknown;
    stream.on("trailers", (trailers) => (status = trailers["grpc-status"]));
    stream.resume().end("2 EUR");
    await once(stream, "close");
    return status;
  };
  const paid = await Promise.all([...sessions, ...sessions, ...sessions].map(pay));
  expect(paid).toEqual(["0", "0", "0", "0", "0", "0"]);
  expect(seen.most).toBe(1);
  for (const session of sessions) session.destroy();
  pod.close();
});

test("a stranger's request for a place is refused as any other, and its headers reach no Pod", async () => {
  await limited();
  const a = await join();
  const { pod } = await countingPod(1);
  await bench.revisionPods("limited", [pod]);
  const headers = {
    "knative-serving-admission": "default/limited",
    "knative-serving-admission-token": "guessed",
  };
  const strange = await callGateway(a.port, { host: "other.default.localhost", headers });
  expect(strange.status).toBe(404);
  expect((await callGateway(a.port, { host: "hello.default.localhost", headers })).status).toBe(
    200,
  );
  expect(
    Object.keys(pod.seen[0]?.headers ?? {}).filter((name) => name.startsWith("knative-")),
  ).toEqual([]);
});
