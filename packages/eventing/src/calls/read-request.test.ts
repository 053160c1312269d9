import { Readable } from "node:stream";
import { type ClientRequest, type WaitingCall } from "@spry/gateway";
import { expect, test } from "vitest";
import { readCall } from "./read-request.ts";

/** Of a client that may call the Service `open` alone. */
function callTo(url: string): Promise<unknown> {
  const headers = { "x-callback-url": url };
  const request = Object.assign(Readable.from([]), { headers, method: "POST" });
  return readCall({
    request: request as unknown as ClientRequest,
    response: undefined as never,
    key: "shop/fn",
    path: "/",
    headers: [],
    mayCall: (service) => service === "shop/open",
    isOfMachine: false,
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
