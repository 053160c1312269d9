import { execFileSync } from "node:child_process";
import { expect, onTestFinished, test } from "vitest";
import { addressKind } from "./address-kind.ts";
import { localIpv4, localIpv6 } from "./own-addresses.ts";

test("what the kernel delivers to itself is read from its tables of routes", () => {
  const ipv4 = `Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 172.17.0.0/16 2 0 2
        |-- 172.17.0.0
           /16 link UNICAST
        |-- 172.17.0.1
           /32 host LOCAL
        |-- 172.17.255.255
           /32 link BROADCAST
        |-- 10.77.0.0
           /16 host LOCAL
`;
  expect(localIpv4(ipv4)).toEqual([
    ["172.17.0.1", 32],
    ["10.77.0.0", 16],
  ]);
  const zeros = "00000000000000000000000000000000";
  const line = (network: string, bits: string, flags: string) =>
    `${network} ${bits} ${zeros} 00 ${zeros} 00000000 00000002 00000000 ${flags}   eth0`;
  const ipv6 = [
    line("fd990000000000000000000000000000", "40", "00000001"),
    line("fd990000000000000000000000000001", "80", "80200001"),
    line(zeros, "00", "00200200"),
  ].join("\n");
  expect(localIpv6(ipv6)).toEqual([["fd99:0000:0000:0000:0000:0000:0000:0001", 128]]);
  expect([localIpv4(""), localIpv6("no table")]).toEqual([[], []]);
});

/** Of this run alone: the names of interfaces are the machine's. */
const [link, peer] = ["a", "b"].map((end) => `guard${process.pid}${end}`) as [string, string];
const ip = (...args: string[]) => execFileSync("ip", args, { stdio: "ignore" });

const mayAddInterfaces = (() => {
  try {
    ip("link", "add", link, "type", "veth", "peer", "name", peer);
    return true;
  } catch {
    return false;
  }
})();

test.skipIf(!mayAddInterfaces)(
  "an address of an interface without a carrier counts as the machine's own (needs root)",
  async () => {
    onTestFinished(() => void ip("link", "del", link));
    expect(addressKind("198.18.77.1")).toBe("private");
    ip("addr", "add", "198.18.77.1/24", "dev", link);
    ip("link", "set", link, "up");
    await expect.poll(() => addressKind("198.18.77.1")).toBe("loopback");
    expect(addressKind("::ffff:198.18.77.1")).toBe("loopback");
    expect(addressKind("198.18.77.2")).toBe("private");
  },
);
