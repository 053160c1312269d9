import { readFileSync } from "node:fs";
import path from "node:path";
import { freePort } from "@spry/test-kit";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  type DockerRegistry,
  hasDockerRegistry,
  startDockerRegistry,
} from "../support/docker-registry.ts";
import { functionManifest, pause, Platform } from "../support/platform.ts";
import { testedSandbox } from "../support/host-address.ts";

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
    const { username, password } = JSON.parse(
      readFileSync(path.join(platform.dataDir, "registry.json"), "utf8"),
    ) as { username: string; password: string };
    const pair = `${username}:${password}`;
    const headers = { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
    const metrics = await (await fetch(`${registry}/metrics`, { headers })).text();
    const used = Number(/^spry_registry_storage_bytes (\d+)$/m.exec(metrics)?.[1]);

    // An upload takes all the room there is.
    const opened = await fetch(`${registry}/v2/my/own/blobs/uploads/`, { method: "POST", headers });
    const upload = registry + (opened.headers.get("location") ?? "");
    const body = new Uint8Array(quota - used - 100);
    expect((await fetch(upload, { method: "PATCH", headers, body })).status).toBe(202);

    const source = `module.exports = { main: () => "there is room" };`;
    await platform.k("apply -f -", functionManifest("late", source));
    // Nearly full: where cleaning has made a little room meanwhile, which other namespaces have a right to.
    await expect
      .poll(() => buildReady("late"), { timeout: 60_000, interval: 100 })
      .toMatch(/^False\/JobFailed\/.*DENIED: the registry is (?:nearly )?full.*delete Functions/s);

    expect((await fetch(upload, { method: "DELETE", headers })).status).toBe(204);
    await platform.callUntil("late.default", ({ body: text }) => text === "there is room");
    expect(await buildReady("late")).toMatch(/^True/);
  });
});

const reserved = await freePort();

// Without TLS it is spoken to on loopback only, and in oci a Pod's loopback is its own.
const unreachable = !hasDockerRegistry || testedSandbox() === "oci";

describe.skipIf(unreachable)("another registry (needs Debian's docker-registry)", () => {
  const port = reserved;
  const platform = new Platform({ args: ["--no-example", `--allow-loopback=127.0.0.1:${port}`] });
  const user = { username: "somebody", password: "a secret" };
  let other: DockerRegistry;
  beforeAll(async () => {
    [other] = await Promise.all([startDockerRegistry({ ...user, port }), platform.start()]);
  });
  afterAll(async () => {
    await platform.remove();
    await other.stop();
  });

  const imageOf = (name: string) =>
    platform.k(`get deployment ${name} -o jsonpath={.spec.template.spec.containers[0].image}`);
  const settledOn = async (name: string, address: string) => {
    await expect
      .poll(() => imageOf(name), { timeout: 60_000, interval: 100 })
      .toMatch(new RegExp(`^${address}${name}@sha256:`));
    await platform.k(`rollout status deployment/${name} --timeout=60s`);
  };

  test("takes over at run time and gives back, without a request lost", async () => {
    const functions = ["one", "two"];
    for (const name of functions)
      await platform.k(
        "apply -f -",
        functionManifest(name, `module.exports = { main: () => "${name}" };`),
      );
    for (const name of functions)
      await platform.callUntil(`${name}.default`, ({ body }) => body === name);

    const failed: string[] = [];
    let calls = 0;
    const loaded = new AbortController();
    onTestFinished(() => loaded.abort());
    const load = functions.map(async (name) => {
      while (!loaded.signal.aborted) {
        const { status, body } = await platform.call(`${name}.default`);
        calls++;
        if (status !== 200 || body !== name) failed.push(`${name}: ${status} ${body}`);
        await pause(5);
      }
    });

    const label = "serverless.kyma-project.io";
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: {
        name: "serverless-registry-config",
        namespace: "kyma-system",
        labels: { [`${label}/remote-registry`]: "config", [`${label}/config`]: "credentials" },
      },
      type: "kubernetes.io/dockerconfigjson",
      stringData: {
        ...user,
        isInternal: "false",
        registryAddress: other.host,
        serverAddress: other.host,
      },
    };
    const { password: _password, ...lacking } = secret.stringData;
    await expect(
      platform.k("apply -f -", JSON.stringify({ ...secret, stringData: lacking })),
    ).rejects.toThrow("data[password]: a Secret with the label");
    await platform.k("apply -f -", JSON.stringify(secret));
    for (const name of functions) await settledOn(name, `${other.host}/default-`);
    // With dependencies, whose layer goes there too, and asked for with the Secret's credentials.
    await platform.k(
      "apply -f -",
      functionManifest("born", `module.exports = { main: () => require("is-number")(3) + "" };`, {
        dependencies: JSON.stringify({ dependencies: { "is-number": "7.0.0" } }),
      }),
    );
    await settledOn("born", `${other.host}/default-`);
    await platform.callUntil("born.default", ({ body }) => body === "true");
    await platform.k("scale function one --replicas=2");
    await platform.k("wait --for=jsonpath={.status.replicas}=2 function/one --timeout=60s");
    await settledOn("one", `${other.host}/default-`);
    await platform.k("delete secret serverless-registry-config -n kyma-system");
    for (const name of [...functions, "born"])
      await settledOn(name, "registry.spry.localhost/default/");
    loaded.abort();
    await Promise.all(load);
    expect(failed).toEqual([]);
    expect(calls).toBeGreaterThan(100);
  });
});
