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
  "http://169.254.169.254/",
])("in a cluster, nothing is sent to %s, which is of its own networks", async (url) => {
  const request = { url, headers: {}, body: Buffer.alloc(0), timeoutMs: 1_000 };
  expect(await postOutside({ ...request, allowPrivate: false })).toMatchObject({
    reason: "AddressRefused",
  });
});
