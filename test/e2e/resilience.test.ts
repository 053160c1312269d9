/** Edits under load lose no request; kill -9 loses nothing that was acknowledged and leaves nothing behind. */
import { rounds } from "@spry/test-kit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Load } from "../support/load.ts";
import { functionManifest, pause, Platform } from "../support/platform.ts";
import { processesOf } from "../support/processes.ts";

const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;

const edits = rounds({ quick: 5, full: 20 });

describe(`${edits} edits under 200 requests per second`, () => {
  const platform = new Platform();
  beforeAll(async () => void (await platform.start()));
  afterAll(() => platform.remove());

  test("lose no request", async () => {
    await platform.k("apply -f -", functionManifest("busy", answering("v0")));
    await platform.callUntil("busy.default", ({ body }) => body === "v0");
    const load = new Load(platform.gateway, "busy.default.localhost");
    load.start(200);
    for (let edit = 1; edit <= edits; edit++) {
      await platform.k("apply -f -", functionManifest("busy", answering(`v${edit}`)));
      await platform.callUntil("busy.default", ({ body }) => body === `v${edit}`);
    }
    // The load's own next request, too, is answered by the newest code.
    await expect.poll(() => load.seen.has(`v${edits}`)).toBe(true);
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(load.answered).toBeGreaterThan(edits * 25);
  });
});

describe("kill -9", () => {
  const platform = new Platform();
  afterAll(() => platform.remove());
  const kills = rounds({ quick: 2, full: 4 });

  test("in the middle of applies and builds: everything converges", async () => {
    const acknowledged = new Set<string>();
    for (let round = 1; round <= kills; round++) {
      await platform.start();
      const before = acknowledged.size;
      const applies = Array.from({ length: 5 }, async (_, index) => {
        const name = `crash-${round}-${index}`;
        const { code } = await platform.kubectl(
          ["apply", "-f", "-"],
          functionManifest(name, answering(name)),
        );
        if (code === 0) acknowledged.add(name);
      });
      // Each round dies a little later: with the first applies stored, with the first builds under way, ...
      while (acknowledged.size < before + Math.min(round + 1, applies.length)) await pause(2);
      await pause(round * 60);
      await platform.kill();
      await Promise.all(applies);
    }
    await platform.start();
    expect(acknowledged.size).toBeGreaterThanOrEqual(kills * 2.5);
    for (const name of acknowledged) {
      await platform.callUntil(
        `${name}.default`,
        ({ status, body }) => status === 200 && body === name,
      );
    }
    // So does what was stored and not acknowledged any more.
    await platform.k("wait --for=condition=Running functions --all --timeout=110s");
  });

  test("running Functions go on serving, and the next start takes them over", async () => {
    const before = await platform.k(
      "get pods -l serverless.kyma-project.io/resource=deployment -o jsonpath={.items[*].metadata.uid}",
    );
    await platform.kill();
    await platform.start();
    const after = await platform.k(
      "get pods -l serverless.kyma-project.io/resource=deployment -o jsonpath={.items[*].metadata.uid}",
    );
    expect(after.split(" ").sort()).toEqual(before.split(" ").sort());
    expect(
      await platform.k(
        "get pods -l serverless.kyma-project.io/resource=deployment -o jsonpath={.items[*].status.containerStatuses[0].restartCount}",
      ),
    ).toMatch(/^[0 ]+$/);
  });

  test("no process is left when it is stopped, even if it is asked to twice at once", async () => {
    // A supervisor signals the whole process group, and npm, which is one of it, passes the signal on.
    process.kill(platform.pid, "SIGTERM");
    await platform.stop();
    expect(processesOf(platform.dataDir)).toEqual([]);
  });
});
