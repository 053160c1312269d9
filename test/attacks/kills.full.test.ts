/**
 * kill -9 of the platform, and now and then of its gateway, at random moments of starts and of work, while Functions are
 * called, edited and deleted. `SPRY_TEST_KILLS` asks for another number, `SPRY_TEST_SEED` for other moments.
 */
import { freePort, rounds } from "@spry/test-kit";
import { afterAll, expect, test } from "vitest";
import { Load } from "../support/load.ts";
import { functionManifest, pause, Platform } from "../support/platform.ts";
import { processesOf } from "../support/processes.ts";
import { seeded } from "../support/seeded.ts";

const kills = Number(process.env["SPRY_TEST_KILLS"] ?? rounds({ quick: 20, full: 200 }));
const { random, seed } = seeded(15);

// A gateway is adopted as long as the API server is where it was.
const ports = { api: await freePort(), gateway: await freePort() };
const platform = new Platform({
  args: ["--no-example", `--gateway-port=${ports.gateway}`, `--api-port=${ports.api}`],
});
afterAll(() => platform.remove());

const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;
const gateways = () =>
  processesOf(platform.dataDir).filter((each) => /gateway(?:-main)?\.[jt]s/.test(each));
const podsOf = (name: string) =>
  platform.k(
    `get pods -l serverless.kyma-project.io/function-name=${name},serverless.kyma-project.io/resource=deployment ` +
      "-o jsonpath={.items[*].metadata.uid}/{.items[*].status.containerStatuses[0].restartCount}",
  );

test(`${kills} kills under load lose no write and no request, and leave nothing behind (seed ${seed})`, async () => {
  await platform.start();
  await platform.k("apply -f -", functionManifest("steady", answering("steady")));
  await platform.callUntil("steady.default", ({ body }) => body === "steady");
  const steadyPods = await podsOf("steady");
  await platform.kill();
  const usualMs = await platform.start();

  /** What the API server has acknowledged: the last value that it may have, and the one that it has at least. */
  const written = { acknowledged: 0, sent: 0 };
  const edited = { acknowledged: 0, sent: 0 };
  const load = new Load(platform.gateway, "steady.default.localhost");
  load.start(50);

  /** Writes until the platform is gone: a counter as fast as it can, and an edit of a Function every now and then. */
  async function write(): Promise<void> {
    while (true) {
      const next = ++written.sent;
      const config = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "counter" } };
      const body = JSON.stringify({ ...config, data: { value: String(next) } });
      const { code } = await platform.kubectl(["apply", "--server-side", "-f", "-"], body);
      if (code !== 0) return;
      written.acknowledged = next;
      const edit = ++edited.sent;
      const manifest = functionManifest("edited", answering(`v${edit}`));
      if ((await platform.kubectl(["apply", "-f", "-"], manifest)).code !== 0) return;
      edited.acknowledged = edit;
    }
  }

  for (let round = 1; round <= kills; round++) {
    const failuresBefore = load.failures.length;
    let hasKilledGateway = false;
    const isStart = random() < 0.6;
    if (isStart) {
      await platform.kill();
      const starting = platform.start().catch(() => {});
      await pause(random() * usualMs * 1.2);
      await platform.kill();
      await starting;
    } else {
      const writing = write();
      await pause(random() * 1500);
      if (random() < 0.2) {
        hasKilledGateway = true;
        for (const each of gateways()) process.kill(Number(each.split(" ")[0]), "SIGKILL");
        await pause(random() * 300);
      }
      await platform.kill();
      await writing;
    }
    await platform.start();
    const where = `round ${round}, ${isStart ? "in a start" : "at work"}`;
    const value = Number(
      await platform.k("get configmap counter --ignore-not-found -o jsonpath={.data.value}"),
    );
    expect(value, where).toBeGreaterThanOrEqual(written.acknowledged);
    expect(value, where).toBeLessThanOrEqual(written.sent);
    await expect.poll(() => gateways().length).toBe(1);
    expect(await podsOf("steady"), where).toBe(steadyPods);
    const answeredBefore = load.answered;
    await expect.poll(() => load.answered).toBeGreaterThan(answeredBefore + 5);
    // A gateway that is killed takes its connections along; nothing else does.
    if (!hasKilledGateway) expect(load.failures.slice(failuresBefore), where).toEqual([]);
  }

  await load.stop();
  expect([...load.seen]).toEqual(["steady"]);
  const last = await platform.k("get function edited -o jsonpath={.spec.source.inline.source}");
  const version = Number(/v(\d+)/.exec(last)?.[1]);
  expect(version).toBeGreaterThanOrEqual(edited.acknowledged);
  await platform
    .callUntil("edited.default", ({ body }) => body === `v${version}`)
    .catch(async (error: unknown) => {
      const state = await platform.k("get functions,jobs,pods -o wide");
      const described = await platform.k("describe function edited");
      throw new Error(`version ${version} is not served:\n${state}\n${described}`, {
        cause: error,
      });
    });
  await platform.k("wait --for=condition=Running functions --all --timeout=110s");
  await platform.stop();
  expect(processesOf(platform.dataDir)).toEqual([]);
  const { code, stdout, stderr } = await platform.spry(["doctor", "--data-dir", platform.dataDir]);
  expect([code, stdout + stderr]).toEqual([0, expect.any(String)]);
}, 7_200_000);
