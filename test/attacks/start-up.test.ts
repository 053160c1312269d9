/** kill -9 at every moment of the start: the next start works, on the same ports, and nothing is left behind. */
import path from "node:path";
import { freePort, rounds } from "@spry/test-kit";
import { afterAll, expect, test } from "vitest";
import { pause, Platform, root, run } from "../support/platform.ts";
import { processesOf } from "../support/processes.ts";

/** `SPRY_TEST_KILLS` asks for another number. */
const kills = Number(process.env["SPRY_TEST_KILLS"] ?? rounds({ quick: 2, full: 30 }));

/** How long a first start takes, in milliseconds. */
let firstMs = 3_000;

const gatewayPort = await freePort();
const args = ["--no-example", `--gateway-port=${gatewayPort}`];
const platform = new Platform({ args, isFirst: true });
afterAll(() => platform.remove());

test(`${kills} kills at moments of the start leave nothing that the next start, or \`spry down\`, does not see`, async () => {
  // The first one issues certificates and builds images; the second is what most starts are.
  firstMs = await platform.start();
  await platform.kill();
  const usualMs = await platform.start();
  for (let round = 0; round < kills; round++) {
    // With the gateway of the round before, or without one that could be adopted.
    if (round % 2 === 0) await platform.stop();
    else await platform.kill();
    const starting = platform.start().catch(() => {});
    // Evenly over the whole start, the gateway's part of it above all.
    await pause((usualMs * (round + 1)) / (kills + 1));
    await platform.kill();
    await starting;
    if (round % 3 === 2) {
      const { code, stderr } = await run(process.execPath, [
        path.join(root, "packages/cli/bin/spry.mjs"),
        "down",
        "--data-dir",
        platform.dataDir,
      ]);
      expect([code, stderr]).toEqual([0, expect.stringContaining("was not running")]);
      await expect.poll(() => processesOf(platform.dataDir), { timeout: 3_000 }).toEqual([]);
    }
    await platform.start();
    expect(platform.gateway.port).toBe(String(gatewayPort));
    const gateways = processesOf(platform.dataDir).filter((each) =>
      /gateway(?:-main)?\.[jt]s/.test(each),
    );
    expect(gateways).toHaveLength(1);
  }
  // With any free port for the API server, too, a gateway goes on: it finds the API server where it was.
  const gateway = () =>
    processesOf(platform.dataDir).filter((each) => /gateway(?:-main)?\.[jt]s/.test(each));
  const before = gateway();
  await platform.kill();
  await platform.start();
  expect(gateway()).toEqual(before);
}, 300_000);

test("nor do kills at moments of the very first start, with certificates and images half made", async () => {
  const moments = Math.ceil(kills / 3);
  for (let round = 0; round < moments; round++) {
    const begun = new Platform({ isFirst: true });
    const starting = begun.start().catch(() => {});
    await pause((firstMs * (round + 1)) / (moments + 1));
    await begun.kill();
    await starting;
    await begun.start();
    expect(await begun.k("get nodes -o jsonpath={.items[*].metadata.name}")).toBe("spry");
    await begun.remove();
    expect(processesOf(begun.dataDir)).toEqual([]);
  }
}, 300_000);
