/** Which addresses are called for tenants, in every way that an address can be written. */
import { createServer, request } from "node:http";
import { type AddressInfo, type LookupFunction } from "node:net";
import { ownAddresses } from "@spry/test-kit";
import { expect, onTestFinished, test } from "vitest";
import { addressKind } from "./address-kind.ts";
import { OutboundGuard, type OutboundPolicy } from "./guard.ts";
import { parseHostPort } from "./host-port.ts";

const own = ownAddresses().map(({ address }) => address);

test.each<[address: string, kind: string | undefined]>([
  ["1.1.1.1", "public"],
  ["2606:4700::1111", "public"],
  ["64:ff9b::101:101", "public"],
  ["10.0.0.1", "private"],
  ["172.31.255.255", "private"],
  ["192.168.1.1", "private"],
  ["100.64.0.1", "private"],
  ["fd12::1", "private"],
  ["::ffff:10.0.0.1", "private"],
  ["127.0.0.1", "loopback"],
  ["127.255.0.9", "loopback"],
  ["::1", "loopback"],
  ["0:0:0:0:0:0:0:1", "loopback"],
  ["::ffff:127.0.0.1", "loopback"],
  ["::ffff:7f00:1", "loopback"],
  ["::127.0.0.1", "loopback"],
  ["64:ff9b::7f00:1", "loopback"],
  ["2002:7f00:1::1", "loopback"],
  ["2001:db8::5efe:127.0.0.1", "loopback"],
  ["2001:db8::200:5efe:7f00:1", "loopback"],
  ["0.0.0.0", "forbidden"],
  ["0.1.2.3", "forbidden"],
  ["::", "forbidden"],
  ["::ffff:0.0.0.0", "forbidden"],
  ["169.254.169.254", "forbidden"],
  ["::ffff:a9fe:a9fe", "forbidden"],
  ["64:ff9b::169.254.169.254", "forbidden"],
  ["2002:a9fe:a9fe::", "forbidden"],
  ["2001:0:a9fe:a9fe::1", "forbidden"],
  ["64:ff9b:1::a9fe:a9fe", "forbidden"],
  ["::ffff:0:169.254.169.254", "forbidden"],
  ["fd00:ec2::254", "forbidden"],
  ["fd20:ce::254", "forbidden"],
  ["100.100.100.200", "forbidden"],
  ["192.0.0.192", "forbidden"],
  ["168.63.129.16", "forbidden"],
  ["fe80::1", "forbidden"],
  ["fe80::1%eth0", "forbidden"],
  ["fe80::1%25eth0", "forbidden"],
  ["fec0::1", "forbidden"],
  ["ff02::1", "forbidden"],
  ["224.0.0.1", "forbidden"],
  ["240.0.0.1", "forbidden"],
  ["255.255.255.255", "forbidden"],
  ["localhost", undefined],
  ["0177.0.0.1", undefined],
  ["", undefined],
])("the address %s is %s", (address, kind) => {
  expect(addressKind(address)).toBe(kind);
});

test.each(own)("the machine's own address %s counts as loopback, or is never called", (address) => {
  const kinds = ["loopback", "forbidden"];
  expect(kinds).toContain(addressKind(address));
  expect(kinds).toContain(addressKind(address.includes(":") ? address : `::ffff:${address}`));
});

test.each([
  ["http://127.1/"],
  ["http://0x7f.1/"],
  ["http://0177.0.0.1/"],
  ["http://2130706433/"],
  ["http://017700000001/"],
  ["http://[::ffff:127.0.0.1]/"],
  ["http://[::1]:8080/"],
  ["http://１２７.0.0.1/"],
  ["https://127.0.0.1./"],
  ["http://0/"],
])("a URL's host %s is refused as the address that it stands for", (url) => {
  const guard = new OutboundGuard({ allowPrivate: true });
  expect(guard.refusal(new URL(url).hostname, 80)?.message).toMatch(
    /is loopback|is link-local or reserved/,
  );
});

const pairs = (...texts: string[]) => texts.map((text) => parseHostPort(text)!);

test.each<[allowed: string, host: string, address: string, port: number, mayCall: boolean]>([
  ["127.0.0.1:5001", "127.0.0.1", "127.0.0.1", 5001, true],
  ["127.0.0.1:5001", "127.0.0.1", "127.0.0.1", 5002, false],
  ["127.0.0.1:5001", "registry.localhost", "127.0.0.1", 5001, true],
  ["127.0.0.1:5001", "::ffff:127.0.0.1", "::ffff:127.0.0.1", 5001, true],
  ["127.0.0.1:5001", "127.0.0.2", "127.0.0.2", 5001, false],
  ["127.0.0.1:5001", "::1", "::1", 5001, false],
  ["localhost:5001", "other.example", "::1", 5001, true],
  ["localhost:5001", "other.example", "127.0.0.2", 5001, false],
  ["[::1]:5001", "localhost", "::1", 5001, true],
  ["Registry.LAN:5001", "registry.lan", "127.0.0.2", 5001, true],
  ["registry.lan:5001", "evil.example", "127.0.0.2", 5001, false],
  ["0x7f.1:5001", "127.0.0.1", "127.0.0.1", 5001, true],
  ["169.254.169.254:80", "169.254.169.254", "169.254.169.254", 80, false],
  ["metadata.example:80", "metadata.example", "169.254.169.254", 80, false],
])("with %s allowed, %s at %s, port %d, may be called: %s", (allowed, host, address, port, may) => {
  const guard = new OutboundGuard({ allowPrivate: true, allowed: pairs(allowed) });
  expect(guard.problem(address, port, host) === undefined).toBe(may);
});

test.each(["localhost", "127.0.0.1", ":5000", "a:0", "a:65536", "a b:1", "*:5000", "a:1/x", ""])(
  "%j is not a host and a port of an exception",
  (text) => expect(parseHostPort(text)).toBeUndefined(),
);

/** Connects as clients do, with names that resolve as the row has it, one answer after the other. */
async function call(policy: Partial<OutboundPolicy>, host: string, ...answers: string[][]) {
  let served = 0;
  const server = createServer((_, response) => {
    served++;
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const lookup = ((_name, _options, callback) => {
    const all = answers.length > 1 ? answers.shift() : answers[0];
    const found = (all ?? []).map((address) => ({ address, family: 4 }));
    callback(null, found);
  }) satisfies LookupFunction;
  const allowed = (policy.allowed ?? []).map((pair) => ({ ...pair, port }));
  const guard = new OutboundGuard({ allowPrivate: true, lookup, ...policy, allowed });
  const outcome = await new Promise<string>((resolve) => {
    const options = { host, port, agent: false, lookup: guard.lookup(port) };
    const sent = request(options, (response) => resolve(`status ${response.statusCode}`));
    sent.on("error", (error) => resolve(error.message)).end();
  });
  return { outcome, served };
}

test.each<[what: string, policy: Partial<OutboundPolicy>, answers: string[][]]>([
  ["a name that resolves to loopback", {}, [["127.0.0.1"]]],
  ["a name of which one address of several is loopback", {}, [["1.1.1.1", "127.0.0.1"]]],
  ["a name of metadata, with loopback allowed", { allowLoopback: true }, [["169.254.169.254"]]],
  ["a private name where those are refused", { allowPrivate: false }, [["10.0.0.1"]]],
])("a connection is not made to %s", async (_, policy, answers) => {
  const { outcome, served } = await call(policy, "name.example", ...answers);
  expect([outcome, served]).toEqual([expect.stringMatching(/^address [\d.]+ is /), 0]);
});

test("the address that was checked is connected to, whatever the name resolves to the next time", async () => {
  const policy = { allowed: [{ host: "127.0.0.1", port: 0 }] };
  const changing = [["127.0.0.1"], ["169.254.169.254"]];
  expect(await call(policy, "name.example", ...changing)).toEqual({
    outcome: "status 200",
    served: 1,
  });
});

test("an address can be refused for a reason of the client's own", () => {
  const problemOf = (address: string) =>
    address === "10.0.0.7" ? "is another tenant's" : undefined;
  const guard = new OutboundGuard({ allowPrivate: true, problemOf });
  expect(guard.problem("::ffff:10.0.0.7", 80)).toBe("address ::ffff:10.0.0.7 is another tenant's");
  expect(guard.problem("10.0.0.8", 80)).toBeUndefined();
});
