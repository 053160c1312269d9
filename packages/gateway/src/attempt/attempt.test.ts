/** An attempt has no client: what it needs is a request and a receiver. */
import * as http from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { Readable } from "node:stream";
import { ManualClock, systemClock } from "@spry/kube";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import {
  Attempt,
  type AttemptFailure,
  type OutgoingRequest,
  type ResponseReceiver,
} from "./attempt.ts";
import { Backend } from "./backend.ts";
import { isBroken } from "./retry.ts";

const settings = { upstreamTimeoutMs: 60_000, idleTimeoutMs: 60_000 };
let server: http.Server;
let handler: http.RequestListener;
let address: string;
beforeEach(async () => {
  server = http.createServer((request, response) => handler(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.close();
  server.closeAllConnections();
});

interface Outcome {
  status?: number;
  body?: string;
  failure?: AttemptFailure;
}

/** Sends the request; resolves when nothing more will be received. */
function attempt(
  request: Partial<OutgoingRequest> = {},
  backend = new Backend(address, settings, systemClock),
  clock = systemClock,
): { sent: Attempt; outcome: Promise<Outcome> } {
  const done = Promise.withResolvers<Outcome>();
  const outcome: Outcome = { body: "" };
  const receiver: ResponseReceiver = {
    informed() {},
    started: (status) => (outcome.status = status),
    received(chunk) {
      outcome.body += chunk.toString();
      return true;
    },
    ended: () => done.resolve(outcome),
    upgraded: (status) => done.resolve({ status }),
    failed: (failure) => done.resolve({ ...outcome, failure }),
  };
  const whole = { method: "POST", path: "/", headers: [], body: null, ...request };
  const sent = new Attempt(backend, whole, receiver, clock);
  sent.send();
  return { sent, outcome: done.promise };
}

test.each([
  ["a body in memory", Buffer.from("event")],
  ["a stream", Readable.from([Buffer.from("ev"), Buffer.from("ent")])],
])("delivers %s, and passes the response on", async (_, body) => {
  handler = (request, response) => request.pipe(response.writeHead(202));
  expect(await attempt({ body }).outcome).toEqual({ status: 202, body: "event" });
});

test("uses its backend's connection again", async () => {
  const ports = new Set<number | undefined>();
  handler = (request, response) => {
    ports.add(request.socket.remotePort);
    response.end();
  };
  const backend = new Backend(address, settings, systemClock);
  for (let i = 0; i < 3; i++) await attempt({}, backend).outcome;
  expect(ports.size).toBe(1);
});

test("reports whether a request that failed was sent", async () => {
  handler = (request) => request.socket.destroy();
  expect((await attempt().outcome).failure).toMatchObject({ wasSent: true, hasResponded: false });
  server.close();
  server.closeAllConnections();
  expect((await attempt().outcome).failure).toMatchObject({ wasSent: false, code: "ECONNREFUSED" });
});

/** The beginning of a body. */
function unfinished(): Readable {
  const body = new Readable({ read() {} });
  body.push(Buffer.alloc(1_000));
  return body;
}

test.each(["POST", "HEAD"])(
  "receives a response to %s that is followed by a reset while the body is sent",
  async (method) => {
    const body = unfinished();
    const pod = createServer((socket) => {
      socket.once("data", () => {
        socket.write(
          "HTTP/1.1 413 Content Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        );
        socket.resetAndDestroy();
        // Before the event loop can tell of the response.
        body.push(Buffer.alloc(16_384));
      });
    });
    await new Promise<void>((resolve) => pod.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void pod.close());
    const { port } = pod.address() as AddressInfo;
    const backend = new Backend(`127.0.0.1:${port}`, settings, systemClock);
    const headers = ["content-length", "200000"];
    const { outcome } = attempt({ method, headers, body }, backend);
    expect(await outcome).toEqual({ status: 413, body: "" });
  },
);

test("reports a connection that is reset without a response while the body is sent", async () => {
  const body = unfinished();
  handler = ({ socket }) => {
    socket.resetAndDestroy();
    body.push(Buffer.alloc(16_384));
  };
  const { failure } = await attempt({ headers: ["content-length", "200000"], body }).outcome;
  expect(failure).toMatchObject({ wasSent: true, hasResponded: false });
  expect(isBroken(failure!)).toBe(true);
});

test.each([
  ["for the head of a response", { startMs: 1_000, totalMs: 5_000 }, 1_000, false],
  ["for the whole of it", { totalMs: 5_000 }, 5_000, false],
  ["for the whole of it, when it has begun", { startMs: 1_000, totalMs: 5_000 }, 5_000, true],
])("keeps the limit %s", async (_, limits, limitMs, begins) => {
  const clock = new ManualClock();
  const arrived = Promise.withResolvers<void>();
  handler = (_request, response) => {
    if (begins) response.write("begun");
    arrived.resolve();
  };
  const { outcome } = attempt({ limits }, new Backend(address, settings, clock), clock);
  await arrived.promise;
  if (begins) await new Promise((resolve) => setTimeout(resolve, 100));
  await clock.advance(limitMs);
  expect(await outcome).toMatchObject({
    body: begins ? "begun" : "",
    failure: { limitMs, wasSent: true, hasResponded: begins },
  });
});

test("that is aborted says nothing more, and its backend's request ends", async () => {
  const closed = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  handler = (_request, response) => {
    response.once("close", closed.resolve);
    arrived.resolve();
  };
  const { sent, outcome } = attempt();
  await arrived.promise;
  sent.abort();
  await closed.promise;
  const nothing = Symbol("nothing");
  const later = new Promise((resolve) => setTimeout(resolve, 50, nothing));
  expect(await Promise.race([outcome, later])).toBe(nothing);
});
