/**
 * The control plane, the gateway and the Function are away or killed while calls are accepted and made: each call that was accepted is
 * made, and none twice without a kill of the gateway in between. `SPRY_TEST_KILLS` asks for another number of kills.
 */
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import path from "node:path";
import { freePort } from "@spry/test-kit";
import { afterAll, expect, test } from "vitest";
import { pause, Platform } from "../support/platform.ts";
import { untilTrue } from "../support/until-true.ts";

const kills = Number(process.env["SPRY_TEST_KILLS"] ?? 4);
const outageMs = 15_000;
const minutes = (count: number) => count * 60_000;

const podPort = await freePort();
const gatewayPort = await freePort();
const platform = new Platform({ args: ["--no-example", `--gateway-port=${gatewayPort}`] });
/** Each call that has reached the Function, and when. */
const made = new Map<string, number[]>();
let pod: Server | undefined;

async function openPod(): Promise<void> {
  const server = createServer((request, response) => {
    const id = String(request.headers["x-call-id"]);
    made.set(id, [...(made.get(id) ?? []), performance.now()]);
    request.resume().once("end", () => response.end("done"));
  });
  await new Promise<void>((resolve) => server.listen(podPort, platform.hostAddress, resolve));
  pod = server;
}

async function closePod(): Promise<void> {
  pod?.closeAllConnections();
  await new Promise<void>((resolve) => (pod ? pod.close(() => resolve()) : resolve()));
  pod = undefined;
}

afterAll(async () => {
  await closePod();
  await platform.remove();
});

const killed: number[] = [];

function killGateway(): void {
  const state = readFileSync(path.join(platform.dataDir, "gateway.json"), "utf8");
  killed.push(performance.now());
  process.kill((JSON.parse(state) as { pid: number }).pid, "SIGKILL");
}

const accepted: string[] = [];

/** Undefined: it was not accepted. */
async function submit(): Promise<string | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${gatewayPort}/async/default/fn/`, {
      method: "POST",
      headers: { prefer: "respond-async", "x-async-retries": "0" },
      body: "{}",
      signal: AbortSignal.timeout(10_000),
    });
    await response.text();
    return response.status === 202
      ? new URL(response.headers.get("location") ?? "").pathname
      : undefined;
  } catch {
    return undefined;
  }
}

/** One call after the other, until the returned function is called. */
function submitting() {
  const over = new AbortController();
  const running = (async () => {
    while (!over.signal.aborted) {
      const location = await submit();
      if (location !== undefined) accepted.push(location);
      await pause(location === undefined ? 100 : 30);
    }
  })();
  return () => {
    over.abort();
    return running;
  };
}

async function state(
  location: string,
): Promise<{ state: string; attempts: number; reason?: string }> {
  const response = await fetch(`http://127.0.0.1:${gatewayPort}${location}`);
  return (await response.json()) as { state: string; attempts: number };
}

test(
  `calls are made, once each, through outages of each part and ${kills} kills`,
  async () => {
    await platform.start();
    const label = "serverless.kyma-project.io/function-name";
    await platform.k(
      "apply -f -",
      JSON.stringify({
        apiVersion: "v1",
        kind: "List",
        items: [
          {
            apiVersion: "v1",
            kind: "Service",
            metadata: { name: "fn", labels: { [label]: "fn" } },
            spec: { ports: [{ port: 80 }] },
          },
          {
            apiVersion: "discovery.k8s.io/v1",
            kind: "EndpointSlice",
            metadata: { name: "fn", labels: { "kubernetes.io/service-name": "fn" } },
            addressType: "IPv4",
            endpoints: [{ addresses: [platform.hostAddress], conditions: { ready: true } }],
            ports: [{ port: podPort }],
          },
        ],
      }),
    );
    await untilTrue("a call is accepted", async () => (await submit()) !== undefined, minutes(1));
    const end = submitting();
    // The Function is away; then the control plane, too; then the Function is back without it.
    await pause(outageMs / 3);
    await platform.kill();
    const before = accepted.length;
    await pause(outageMs);
    expect(accepted.length).toBeGreaterThan(before);
    expect(await state(accepted.at(-1) ?? "")).toMatchObject({
      state: "waiting",
      reason: "UpstreamUnreachable",
      attempts: 0,
    });
    await openPod();
    await untilTrue("calls are made without the control plane", async () => made.size > 20, 30_000);
    await platform.start();
    for (let round = 0; round < kills; round++) {
      await pause(2_000);
      if (round % 2 === 0) await closePod();
      killGateway();
      await pause(1_000);
      if (round % 4 === 1) {
        await platform.kill();
        await platform.start();
      }
      if (!pod) await openPod();
    }
    await pause(2_000);
    await end();
    const idOf = (location: string) => location.slice(location.lastIndexOf(".") + 1);
    const missing = () => accepted.filter((location) => !made.has(idOf(location)));
    await untilTrue("all calls have been made", async () => missing().length === 0, minutes(2));
    const states = new Map<string, number>();
    await untilTrue(
      "all calls have ended",
      async () => {
        states.clear();
        for (const location of accepted) {
          const { state: now } = await state(location);
          states.set(now, (states.get(now) ?? 0) + 1);
        }
        return !states.has("waiting") && !states.has("running");
      },
      minutes(2),
    );
    const twice = [...made].filter(([, times]) => times.length > 1);
    console.log(`${accepted.length} calls accepted, ${twice.length} made more than once`, states);
    expect([...states]).toEqual([["succeeded", accepted.length]]);
    // The gateway was killed between the request and the note of its end.
    const unexplained = twice.filter(([, times]) =>
      times
        .slice(1)
        .some((at, n) => !killed.some((kill) => kill >= (times[n] ?? 0) - 500 && kill <= at)),
    );
    expect(unexplained).toEqual([]);
  },
  minutes(9),
);
