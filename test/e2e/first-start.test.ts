/** What a person sees who starts the platform for the first time. */
import { statSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Platform } from "../support/platform.ts";

const platform = new Platform({ args: [] });
beforeAll(async () => void (await platform.start()));
afterAll(() => platform.remove());

test("it applies the example, prints its URL and keeps running", async () => {
  const answer = await platform.call("hello.default");
  expect(answer).toMatchObject({ status: 200, body: expect.stringContaining("Hello, World!") });
  expect(platform.output).toContain("http://hello.default.localhost:");
});

test("it writes a kubeconfig that works, and that only its owner can read", async () => {
  expect(await platform.k("auth whoami -o jsonpath={.status.userInfo.username}")).toBe("admin");
  expect(statSync(platform.kubeconfig).mode & 0o777).toBe(0o600);
});
