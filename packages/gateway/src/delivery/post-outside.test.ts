import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { ownAddresses } from "@spry/test-kit";
import { expect, test } from "vitest";
import { postOutside } from "./post-outside.ts";

test.each([
  "http://10.0.0.1/",
  "http://192.168.1.1/",
  "http://[fd00::1]/",
  "http://[::ffff:10.0.0.1]/",
  "http://[64:ff9b::10.0.0.1]/",
  "http://[2002:a00:1::1]/",
  "http://127.0.0.1/",
  "http://2130706433/",
  "http://0x7f.1/",
  "http://0177.0.0.1/",
  "http://127.0.0.1./",
  "http://0.0.0.0/",
  "http://[::]/",
  "http://[::1]/",
  "http://[::ffff:127.0.0.1]/",
  "http://localhost/",
  "http://169.254.169.254/",
  "http://2852039166/",
  "http://[::ffff:169.254.169.254]/",
  "http://[fe80::a9fe:a9fe]/",
  "http://[fd00:ec2::254]/",
  "http://100.100.100.200/",
])("in a cluster, nothing is sent to %s, which is of its own networks", async (url) => {
  const request = { url, headers: {}, body: Buffer.alloc(0), timeoutMs: 1_000 };
  const result = await postOutside({ ...request, allowPrivate: false });
  expect(JSON.stringify(result)).toMatch(/"AddressRefused"|address \S+ is/);
  expect(result).not.toHaveProperty("status");
});

test("in a cluster, nothing is sent to an address that this machine has itself", async () => {
  for (const { address } of ownAddresses()) {
    const host = address.includes(":") ? `[${address.replace(/%.*/, "")}]` : address;
    const request = { headers: {}, body: Buffer.alloc(0), timeoutMs: 1_000, allowPrivate: false };
    const result = await postOutside({ ...request, url: `http://${host}:9/` });
    expect(result).toMatchObject({ reason: "AddressRefused" });
  }
});

test("a redirection is not followed: its status is the result", async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.writeHead(307, { location: "/secret" }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/done`;
  const request = { url, headers: {}, body: Buffer.alloc(0), timeoutMs: 10_000 };
  expect(await postOutside({ ...request, allowPrivate: true })).toMatchObject({ status: 307 });
  expect(asked).toEqual(["/done"]);
  await new Promise((resolve) => server.close(resolve));
});
