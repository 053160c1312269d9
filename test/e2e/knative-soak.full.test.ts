/**
 * Many Knative Services that are asked in bursts, at random times, and go to zero in between: the platform's processes do not grow, each request
 * gets its own answer, and in the end there is no Pod. `SPRY_TEST_SOAK_MINUTES=30` soaks for half an hour,
 * `SPRY_TEST_SOAK_SERVICES` is how many there are, `SPRY_TEST_SOAK_BURSTS` how many bursts there are in a minute.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { functionManifest, pause, Platform } from "../support/platform.ts";
import { type Footprint, footprintOf, quarterMedians } from "../support/resident.ts";
import { seeded } from "../support/seeded.ts";
import { impatientServing } from "../support/serving-settings.ts";
import { untilTrue } from "../support/until-true.ts";

const setting = (name: string, usual: number) => Number(process.env[name] ?? usual);
const soakMinutes = setting("SPRY_TEST_SOAK_MINUTES", 30);
const services = setting("SPRY_TEST_SOAK_SERVICES", 100);
const perMinute = setting("SPRY_TEST_SOAK_BURSTS", 30);
const sampleMs = 1_000;
/** The last quarter's median over the second one's; a process takes some minutes to reach its level. */
const allowedGrowth = soakMinutes < 10 ? 1.5 : 1.15;
const minutes = (count: number) => count * 60_000;
const { random, seed } = seeded(22);

const source = `const { hostname } = require("node:os");
module.exports = {
  main: async (event) => {
    await new Promise((resolve) => setTimeout(resolve, 50 + Math.random() * 200));
    return [process.env.ANSWER, event.data.id, hostname()].join(" ");
  },
};`;

const platform = new Platform();
afterAll(() => platform.remove(), minutes(2));

const nameOf = (n: number) => `soak-${n}`;
/** A third of them has a hard limit, so that a burst takes several Pods. */
const limitOf = (n: number) => (n % 3 === 0 ? 2 : 0);

function kservices(image: string): string {
  const items = Array.from({ length: services }, (_, n) => ({
    apiVersion: "serving.knative.dev/v1",
    kind: "Service",
    metadata: { name: nameOf(n), namespace: "default" },
    spec: {
      template: {
        metadata: {
          annotations: {
            "autoscaling.knative.dev/window": "6s",
            "autoscaling.knative.dev/initial-scale": "0",
            "autoscaling.knative.dev/max-scale": "3",
          },
        },
        spec: {
          serviceAccountName: "serverless-function",
          containerConcurrency: limitOf(n),
          containers: [
            {
              image,
              env: [
                { name: "ANSWER", value: nameOf(n) },
                { name: "FUNC_NAME", value: nameOf(n) },
                { name: "SERVICE_NAMESPACE", value: "default" },
              ],
            },
          ],
        },
      },
    },
  }));
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

/** The platform's processes by name; a gateway that has been replaced is another one. */
function footprints(): Record<string, Footprint> {
  const state = readFileSync(path.join(platform.dataDir, "gateway.json"), "utf8");
  const { pid } = JSON.parse(state) as { pid: number };
  return { platform: footprintOf(platform.pid), gateway: footprintOf(pid) };
}

async function prepare(): Promise<void> {
  await platform.start();
  await platform.k("apply -f -", functionManifest("made", source));
  await platform.k("wait --for=condition=Running function/made --timeout=60s");
  const pinned = "-o jsonpath={.spec.template.spec.containers[0].image}";
  const image = await platform.k(`get deployment made ${pinned}`);
  const config = JSON.parse(impatientServing) as { items: { data?: Record<string, string> }[] };
  const settings = config.items.find(({ data }) => data)?.data;
  if (settings) settings["allow-zero-initial-scale"] = "true";
  await platform.k("apply -f -", JSON.stringify(config));
  await platform.k("apply -f -", kservices(image));
  await platform.k("wait --for=condition=Ready ksvc --all --timeout=120s");
}

test(
  `${services} Services, ${perMinute} bursts a minute for ${soakMinutes} minutes: memory is constant, and nothing is lost`,
  async () => {
    await prepare();
    const begin = performance.now();
    const end = begin + minutes(soakMinutes);
    const samples: Record<string, Footprint>[] = [];
    const watching = (async () => {
      while (performance.now() < end) {
        samples.push(footprints());
        await pause(sampleMs);
      }
    })();
    const lost: string[] = [];
    const pods = new Map<string, number>();
    let requests = 0;
    const ask = async (service: string, id: string) => {
      requests++;
      const options = {
        body: JSON.stringify({ id }),
        headers: { "content-type": "application/json" },
      };
      const { status, body } = await platform
        .call(`${service}.default`, options)
        .catch((error: Error) => ({ status: 0, body: error.message }));
      const [answered, echoed, pod = ""] = body.split(" ");
      if (status === 200 && answered === service && echoed === id)
        pods.set(pod, (pods.get(pod) ?? 0) + 1);
      else
        lost.push(`${((performance.now() - begin) / 1_000).toFixed(1)} s ${id}: ${status} ${body}`);
    };
    const underWay = new Set<Promise<unknown>>();
    for (let burst = 0; performance.now() < end; burst++) {
      const service = nameOf(Math.floor(random() * services));
      const size = 1 + Math.floor(random() * 6);
      for (let n = 0; n < size; n++) {
        const one: Promise<unknown> = ask(service, `b${burst}-${n}`).then(() =>
          underWay.delete(one),
        );
        underWay.add(one);
      }
      // Twice as long as the mean at most, and sometimes not at all.
      await pause(random() * 2 * (minutes(1) / perMinute));
    }
    await Promise.all([watching, ...underWay]);

    const figures = Object.keys(samples[0] ?? {}).flatMap((name) =>
      (["residentMiB", "descriptors"] as const).map((what) => {
        const quarters = quarterMedians(samples.map((each) => each[name]?.[what] ?? Number.NaN));
        return { of: `${name}, ${what}`, quarters, growth: quarters[3] / quarters[1] };
      }),
    );
    console.log(
      [
        `seed ${seed}: ${requests} requests, answered by ${pods.size} Pods, lost ${lost.length}`,
        ...figures.map(
          ({ of, quarters, growth }) =>
            `${of}, by quarters: ${quarters.map((each) => each.toFixed(0)).join(", ")}; growth × ${growth.toFixed(3)}`,
        ),
      ].join("\n"),
    );
    expect(lost).toEqual([]);
    // They have gone to zero in between, most of the time.
    expect(pods.size).toBeGreaterThan(soakMinutes * perMinute * 0.5);
    const left = "get pods -l serving.knative.dev/service -o name";
    await untilTrue("no Pod is left", async () => (await platform.k(left)) === "", minutes(2));
    expect(figures.filter(({ growth }) => !(growth <= allowedGrowth))).toEqual([]);
  },
  minutes(soakMinutes + 8),
);
