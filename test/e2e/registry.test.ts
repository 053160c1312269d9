import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { functionManifest, Platform } from "../support/platform.ts";

describe("a registry with a small quota", () => {
  const quota = 8 * 1024 * 1024;
  const platform = new Platform({ args: ["--no-example", "--registry-quota=8Mi"] });
  beforeAll(() => platform.start());
  afterAll(() => platform.remove());

  const buildReady = (name: string) => {
    const fields = `{range .status.conditions[?(@.type=="BuildReady")]}{.status}/{.reason}/{.message}{end}`;
    return platform.k(`get function ${name} -o jsonpath=${fields.replaceAll(" ", "")}`);
  };

  test("a build that does not fit says so in the Function's status, and goes on when there is room", async () => {
    const { registry } = platform.endpoints;
    const secret = JSON.parse(
      await platform.k(
        "get secret serverless-registry-config-default -n kyma-system -o jsonpath={.data}",
      ),
    ) as { username: string; password: string };
    const plain = (text: string) => Buffer.from(text, "base64").toString();
    const pair = `${plain(secret.username)}:${plain(secret.password)}`;
    const headers = { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
    const metrics = await (await fetch(`${registry}/metrics`, { headers })).text();
    const used = Number(/^spry_registry_storage_bytes (\d+)$/m.exec(metrics)?.[1]);

    // Somebody's upload takes all the room there is.
    const opened = await fetch(`${registry}/v2/my/own/blobs/uploads/`, { method: "POST", headers });
    const upload = registry + (opened.headers.get("location") ?? "");
    const body = new Uint8Array(quota - used - 100);
    expect((await fetch(upload, { method: "PATCH", headers, body })).status).toBe(202);

    const source = `module.exports = { main: () => "there is room" };`;
    await platform.k("apply -f -", functionManifest("late", source));
    await expect
      .poll(() => buildReady("late"), { timeout: 30_000, interval: 100 })
      .toMatch(/^False\/JobFailed\/.*DENIED: the registry is full: .*delete Functions/s);

    expect((await fetch(upload, { method: "DELETE", headers })).status).toBe(204);
    await platform.callUntil("late.default", ({ body: text }) => text === "there is room");
    expect(await buildReady("late")).toMatch(/^True/);
  });
});
