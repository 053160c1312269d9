/** With 2,000 APIRules in place, a change of one is effective within 100 ms: written over TLS, answered by the gateway. */
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { type ApiRule, apiRules } from "@spry/function";
import { httpsTransport, KubeClient, loadKubeconfig } from "@spry/kube";
import { afterAll, expect, test } from "vitest";
import { functionManifest, pause, Platform } from "../support/platform.ts";
import { processesOf } from "../support/processes.ts";

const count = Number(process.env["SPRY_TEST_RULES"] ?? 2_000);
const changes = 40;

const platform = new Platform();
const agent = new Agent({ keepAlive: true });
afterAll(async () => {
  agent.destroy();
  await platform.remove();
});

const ruleFor = (n: number, path = "/one"): ApiRule => ({
  metadata: { name: `shop${n}`, namespace: "default" },
  spec: {
    gateway: "default/web",
    hosts: [`shop${n}.shop.example`],
    service: { name: "till", port: 80 },
    rules: [{ path, methods: ["GET"], noAuth: true }],
  },
});

/** The status of a request that the gateway answers over HTTP. */
function answer(n: number, path: string): Promise<number> {
  const { port } = platform.gateway;
  const headers = { host: `shop${n}.shop.example` };
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, headers, agent }, (response) =>
      response.resume().on("end", () => resolve(response.statusCode ?? 0)),
    );
    sent.on("error", reject).end();
  });
}

/** What platform and gateway have used of the processors, in milliseconds. */
function processorTime(): number {
  const gateway = processesOf(platform.dataDir).find((each) =>
    /gateway(?:-main)?\.[jt]s/.test(each),
  );
  const ticks = [platform.pid, Number(gateway?.split(" ")[0])].map((pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return Number(fields[11]) + Number(fields[12]);
  });
  return ticks.reduce((sum, each) => sum + each * 10, 0);
}

test(`a change of one of ${count} APIRules is effective within 100 ms`, async () => {
  await platform.start();
  const client = new KubeClient(httpsTransport(loadKubeconfig(platform.kubeconfig)));
  const http = { number: 80, name: "http", protocol: "HTTP" };
  const gateway = {
    apiVersion: "networking.istio.io/v1",
    kind: "Gateway",
    metadata: { name: "web", namespace: "default" },
    spec: { selector: { app: "any" }, servers: [{ port: http, hosts: ["*.shop.example"] }] },
  };
  await platform.k("apply -f -", JSON.stringify(gateway));
  await platform.k(
    "apply -f -",
    functionManifest("till", "module.exports = { main: () => 'in' };"),
  );
  await platform.k("wait --for=condition=Running function/till --timeout=100s");
  const pending = Array.from({ length: count }, (_, n) => n);
  const write = async () => {
    for (let n = pending.pop(); n !== undefined; n = pending.pop())
      await client.create(apiRules, ruleFor(n));
  };
  await Promise.all(Array.from({ length: 8 }, write));
  await expect
    .poll(async () => {
      const { items } = await client.list(apiRules, { namespace: "default" });
      return items.filter(({ status }) => status?.state === "Ready").length;
    })
    .toBe(count);
  await expect.poll(() => answer(count - 1, "/one")).toBe(200);

  const took: { total: number; afterwards: number; processor: number }[] = [];
  for (let round = 0; round < changes; round++) {
    const n = (round * 97) % count;
    const { spec } = ruleFor(n, "/two");
    const used = processorTime();
    const begin = performance.now();
    await client.patch(apiRules, { name: `shop${n}`, namespace: "default" }, { spec });
    const written = performance.now();
    while ((await answer(n, "/two")) !== 200) await pause(1);
    const end = performance.now();
    await pause(300);
    took.push({
      total: end - begin,
      afterwards: end - written,
      processor: processorTime() - used,
    });
  }
  const of = (name: keyof (typeof took)[number], share: number) => {
    const sorted = took.map((each) => each[name]).sort((one, other) => one - other);
    return Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  };
  for (const name of ["total", "afterwards", "processor"] as const)
    console.log(
      `${name}: median ${of(name, 0.5)} ms, 90 % ${of(name, 0.9)} ms, max ${of(name, 1)} ms`,
    );
  expect(of("processor", 0.5)).toBeLessThanOrEqual(100);
}, 600_000);
