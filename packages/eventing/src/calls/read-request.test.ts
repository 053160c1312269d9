import { Readable } from "node:stream";
import { type ClientRequest, type WaitingCall } from "@spry/gateway";
import { expect, test } from "vitest";
import { readCall } from "./read-request.ts";

/** Of a client that may call the Service `open` alone. */
function callTo(url: string): Promise<unknown> {
  return call({ headers: { "x-callback-url": url } });
}

interface Given {
  headers?: Record<string, string>;
  body?: Buffer[];
  takeMemory?: (bytes: number) => boolean;
}

function call({ headers = {}, body = [], takeMemory = () => true }: Given): Promise<unknown> {
  const request = Object.assign(Readable.from(body), { headers, method: "POST" });
  return readCall({
    request: request as unknown as ClientRequest,
    response: undefined as never,
    key: "shop/fn",
    path: "/",
    headers: [],
    mayCall: (service) => service === "shop/open",
    isOfMachine: false,
    takeMemory,
  } satisfies WaitingCall);
}

test.each([
  ["http://open.other.svc.cluster.local/", "Services of the Function's own namespace shop only"],
  ["http://open.other.svc.cluster.local./", "own namespace shop only"],
  ["http://OPEN.other.SVC/", "own namespace shop only"],
  ["http://10-0-0-1.shop.pod.cluster.local/", "own namespace shop only"],
  ["http://guarded.shop.svc.cluster.local/", "Service guarded cannot be called from where"],
  ["http://guarded.shop.svc./", "Service guarded cannot be called from where"],
])("results are not sent to %s", async (url, message) => {
  await expect(callTo(url)).rejects.toThrow(message);
});

test("results are sent to Services that the client may call, and outside", async () => {
  for (const url of ["http://open.shop.svc/", "https://example.com/"])
    expect(await callTo(url)).toMatchObject({ options: { callbackUrl: url } });
});

test("a body counts towards the gateway's memory, and is refused without any left", async () => {
  let left = 2_500;
  const takeMemory = (bytes: number) => (left -= bytes) >= 0;
  const part = Buffer.alloc(1_000);
  expect(await call({ body: [part, part], takeMemory })).toMatchObject({ body: { length: 2_000 } });
  expect(left).toBe(500);
  await expect(call({ body: [part], takeMemory })).rejects.toMatchObject({ status: 503 });
});

test("a body that says that it is too large is not read", async () => {
  const headers = { "content-length": String(1024 ** 2 + 1) };
  const takeMemory = () => expect.fail("it was read");
  const body = [Buffer.alloc(10)];
  await expect(call({ headers, body, takeMemory })).rejects.toMatchObject({ status: 413 });
});
