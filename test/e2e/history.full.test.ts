/** The history of Functions, at length: many edits, a cleaning of the registry, crashes. */
import { cpSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { imagesInUse } from "@spry/controller";
import { createRegistry } from "@spry/image";
import { httpsTransport, KubeClient, loadKubeconfig } from "@spry/kube";
import { expect, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";
import { historyOn } from "../support/history.ts";
import { pause } from "../support/platform.ts";

const platform = enginePlatform();
const { answers, edit, historyOf, numbersOf, rollback, settled } = historyOn(platform);

test("twenty edits leave ten revisions, whose images a cleaning keeps", async () => {
  for (let number = 1; number <= 12; number++) await edit("many", `text ${number}`);
  for (let number = 1; number <= 8; number++)
    await platform.k(
      `patch function many --type=merge -p {"spec":{"env":[{"name":"N","value":"${number}"}]}}`,
    );
  await expect.poll(async () => (await numbersOf("many"))[0]).toBe(20);
  await expect.poll(() => numbersOf("many")).toEqual([20, 19, 18, 17, 16, 15, 14, 13, 12, 11]);

  // Some days later: a registry on a copy of the images, given what the cluster uses.
  const client = new KubeClient(httpsTransport(loadKubeconfig(platform.kubeconfig)));
  const inUse = await imagesInUse(client, { runtimeImages: {}, builderImage: "none" });
  const dir = mkdtempSync(path.join(tmpdir(), "registry-"));
  cpSync(platform.registryDirectory(), dir, { recursive: true });
  const later = { now: () => Date.now() + 3 * 24 * 3_600_000, elapsed: () => performance.now() };
  const registry = createRegistry({ dir, clock: later, retention: { previousImages: 0 } });
  const listening = await registry.listen({ host: "127.0.0.1", port: 0 });
  const { manifests } = await registry.clean(inUse);
  expect(manifests).toBeGreaterThan(0);
  for (const { image } of await historyOf("many")) {
    const digest = image.split("@")[1];
    const url = `http://127.0.0.1:${listening.port}/v2/default/many/manifests/${digest}`;
    expect((await fetch(url, { method: "HEAD" })).status).toBe(200);
  }
  await listening.close();
  await registry.close();
});

test("kill -9 of the platform, or of the controllers of a cluster, during a rollback: it ends as if nothing had happened", async () => {
  await edit("crash", "one");
  await edit("crash", "two");
  await settled("crash", 2);
  for (const [round, text] of ["one", "two", "one"].entries()) {
    await rollback("crash", "--no-wait");
    await pause(round * 40);
    await platform.crash();
    await answers("crash", text);
    await settled("crash", 3 + round);
  }
  expect(await numbersOf("crash")).toEqual([5, 4, 3, 2, 1]);
});
