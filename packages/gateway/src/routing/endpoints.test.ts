import { type EndpointSlice } from "@spry/kube";
import { expect, test } from "vitest";
import { withoutRefused } from "./endpoints.ts";

const sliceOf = (...addresses: string[]): EndpointSlice => ({
  metadata: { namespace: "shop", name: "cart" },
  addressType: "IPv4",
  endpoints: addresses.map((address) => ({ addresses: [address] })),
});

test.each([
  ["169.254.169.254", false],
  ["::ffff:169.254.169.254", false],
  ["fd00:ec2::254", false],
  ["fe80::1%eth0", false],
  ["100.100.100.200", false],
  ["0.0.0.0", false],
  ["metadata.example.com", false],
  ["10.0.0.9", true],
  ["127.9.8.7", true],
  ["34.118.224.9", true],
])("the address %s of a slice is called, no matter who writes it: %s", (address, isCalled) => {
  const { endpoints } = withoutRefused(sliceOf(address, "10.0.0.1"));
  const all = endpoints?.flatMap(({ addresses }) => addresses);
  expect(all).toEqual([...(isCalled ? [address] : []), "10.0.0.1"]);
});
