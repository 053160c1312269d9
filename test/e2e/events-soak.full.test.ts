/**
 * Events at a constant rate: the gateway's process, which accepts and delivers them, does not grow, and each arrives once.
 * `SPRY_TEST_SOAK_MINUTES=30` soaks for half an hour, `SPRY_TEST_SOAK_RATE` is how many events there are in a second.
 */
import { readFileSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import path from "node:path";
import { freePort } from "@spry/test-kit";
import { afterAll, expect, test } from "vitest";
import { EventSink } from "../support/event-sink.ts";
import { pause, Platform } from "../support/platform.ts";
import { untilTrue } from "../support/until-true.ts";

const soakMinutes = Number(process.env["SPRY_TEST_SOAK_MINUTES"] ?? 2);
const perSecond = Number(process.env["SPRY_TEST_SOAK_RATE"] ?? 200);
const sampleMs = 1_000;
/**
 * Of the median of what is resident: the last quarter's over the second one's. A process takes some minutes to reach its level, so
 * that a short run finds large leaks alone.
 */
const allowedGrowth = soakMinutes < 10 ? 1.5 : 1.15;
const minutes = (count: number) => count * 60_000;

const publisherPort = await freePort();
const platform = new Platform({ args: ["--no-example", `--publisher-port=${publisherPort}`] });
const sink = new EventSink(await freePort());
const agent = new Agent({ keepAlive: true, maxSockets: 32 });
afterAll(async () => {
  agent.destroy();
  sink.close();
  await platform.remove();
});

function publish(id: string): Promise<number> {
  const body = `{"specversion":"1.0","id":"${id}","source":"shop","type":"order.created.v1","data":{"n":"${"x".repeat(200)}"}}`;
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/cloudevents+json" };
    const options = { port: publisherPort, method: "POST", path: "/publish", agent, headers };
    httpRequest(options, (response) => {
      response.resume().once("end", () => resolve(response.statusCode ?? 0));
    })
      .once("error", reject)
      .end(body);
  });
}

/** What is resident of the process that accepts and delivers, in MiB. */
function resident(): number {
  const state = readFileSync(path.join(platform.dataDir, "gateway.json"), "utf8");
  const { pid } = JSON.parse(state) as { pid: number };
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

test(
  `${perSecond} events a second for ${soakMinutes} minutes: memory is constant, and each event arrives once`,
  async () => {
    await platform.start();
    await sink.open();
    await sink.subscribe(platform, { config: { maxInFlightMessages: "50" } });
    const begin = performance.now();
    const end = begin + minutes(soakMinutes);
    const samples: number[] = [];
    const watching = (async () => {
      while (performance.now() < end) {
        await pause(sampleMs);
        samples.push(resident());
      }
    })();
    const statuses = new Map<number, number>();
    const publishing = new Set<Promise<boolean>>();
    let sent = 0;
    for (; performance.now() < end; sent++) {
      const due = begin + (sent * 1_000) / perSecond;
      const early = due - performance.now();
      if (early > 0) await pause(early);
      const one: Promise<boolean> = publish(`e${sent}`).then((status) => {
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        return publishing.delete(one);
      });
      publishing.add(one);
    }
    await Promise.all([watching, ...publishing]);
    expect([...statuses]).toEqual([[204, sent]]);
    const areThere = async () => sink.received.size === sent;
    await untilTrue("all events have arrived", areThere, minutes(2)).catch(
      async (error: unknown) => {
        const ids = Array.from({ length: sent }, (_, n) => `e${n}`);
        const missing = ids.filter((id) => !sink.received.has(id));
        const { stdout } = await platform.spry(["events", "list"]);
        const some = [...missing.slice(0, 5), "…", ...missing.slice(-5)].join(", ");
        throw new Error(`${missing.length} of ${sent} are missing: ${some}\n${stdout}`, {
          cause: error,
        });
      },
    );
    const twice = [...sink.received.values()].filter((times) => times.length > 1);
    expect(twice).toEqual([]);

    const quarter = (n: number) =>
      median(samples.slice((n * samples.length) / 4, ((n + 1) * samples.length) / 4));
    const quarters = [0, 1, 2, 3].map((n) => quarter(n).toFixed(0));
    const growth = quarter(3) / quarter(1);
    console.log(
      `${sent} events; resident, MiB, by quarters: ${quarters.join(", ")}; growth × ${growth.toFixed(3)}`,
    );
    expect(growth).toBeLessThanOrEqual(allowedGrowth);
  },
  minutes(soakMinutes + 5),
);
