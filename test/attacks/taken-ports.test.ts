/**
 * A tenant's Function takes the platform's ports as soon as they are free: after kill -9 of the platform and of its gateway. The next start
 * names whose Pod it was and ends it, and what is meant for the platform reaches the platform.
 */
import { connect } from "node:net";
import { readFileSync } from "node:fs";
import path from "node:path";
import { freePort } from "@spry/test-kit";
import { afterAll, expect, test } from "vitest";
import { Platform } from "../support/platform.ts";

const [apiPort, gatewayPort, registryPort, dashboardPort] = await Promise.all(
  Array.from({ length: 4 }, () => freePort()),
);
const ports = [apiPort, gatewayPort, registryPort, dashboardPort];
const args = [
  "--no-example",
  "--sandbox=process",
  `--api-port=${apiPort}`,
  `--gateway-port=${gatewayPort}`,
  `--registry-port=${registryPort}`,
  `--dashboard-port=${dashboardPort}`,
];
const platform = new Platform({ args, isFirst: true });
afterAll(() => platform.remove());

const isLinux = process.platform === "linux";

/** Listens at every port of the platform at both loopback addresses, and answers everything with its own word. */
const source = `
const net = require("node:net");
const take = (port, host) => {
  const server = net.createServer((socket) => socket.on("error", () => {}).end("HTTP/1.1 200 OK\\r\\nconnection: close\\r\\n\\r\\ntaken"));
  server.once("error", () => setTimeout(take, 5, port, host));
  server.listen(port, host);
};
for (const port of ${JSON.stringify(ports)}) for (const host of ["127.0.0.1", "::1"]) take(port, host);
module.exports = { main: () => "a function" };`;

const manifest = JSON.stringify({
  apiVersion: "serverless.kyma-project.io/v1alpha2",
  kind: "Function",
  metadata: { name: "taker", namespace: "default" },
  spec: { runtime: "nodejs24", source: { inline: { source } } },
});

/** What answers at a port first says. */
function answerAt(port: number, host: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    let text = "";
    const end = () => resolve(text || "nothing");
    socket.on("error", end).on("close", end);
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    socket.setTimeout(3_000, () => socket.destroy());
    socket.end("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
  });
}

test.skipIf(!isLinux)(
  "ports that a Pod has taken while the platform was dead are the platform's again",
  async () => {
    await platform.start();
    await platform.k("apply -f -", manifest);
    await platform.k("wait --for=condition=Running function/taker --timeout=120s");
    expect(await answerAt(gatewayPort ?? 0, "::1")).not.toContain("taken");
    const state = readFileSync(path.join(platform.dataDir, "gateway.json"), "utf8");
    const { pid } = JSON.parse(state) as { pid: number };
    await platform.kill();
    process.kill(pid, "SIGKILL");
    for (const port of ports)
      await expect.poll(() => answerAt(port ?? 0, "127.0.0.1")).toContain("taken");
    await platform.start();
    expect(platform.output).toContain("had been taken by the Pod default/taker-");
    expect(platform.gateway.port).toBe(String(gatewayPort));
    expect(platform.endpoints.apiServer).toBe(`https://127.0.0.1:${apiPort}`);
    expect(platform.endpoints.registry).toBe(`http://127.0.0.1:${registryPort}`);
    expect(platform.endpoints.dashboard).toBe(`http://127.0.0.1:${dashboardPort}`);
    for (const port of ports) expect(await answerAt(port ?? 0, "127.0.0.1")).not.toContain("taken");
    expect(await answerAt(gatewayPort ?? 0, "::1")).not.toContain("taken");
    // It runs again, and finds nothing to take.
    await platform.k("wait --for=condition=Running function/taker --timeout=120s");
  },
  300_000,
);

test.skipIf(!isLinux)(
  "nor does a Pod keep the gateway's port when the gateway alone ends",
  async () => {
    const state = () =>
      JSON.parse(readFileSync(path.join(platform.dataDir, "gateway.json"), "utf8")) as {
        pid: number;
        port: number;
      };
    const before = state();
    process.kill(before.pid, "SIGKILL");
    await expect
      .poll(() => state().pid !== before.pid && state().port > 0, { timeout: 60_000 })
      .toBe(true);
    expect(state().port).toBe(gatewayPort);
    for (const host of ["127.0.0.1", "::1"])
      expect(await answerAt(gatewayPort ?? 0, host)).not.toContain("taken");
  },
  120_000,
);
