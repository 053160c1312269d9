/** What the dashboard costs a platform that no one looks at. */
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { memoryOf, settledMemory } from "../../bench/memory.ts";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;
const limitMegabytes = 10;

test("an idle platform takes at most 10 MB more after visits to all pages", async () => {
  await platform.k("apply -f -", functionManifest("seen", `module.exports = { main: () => 1 };`));
  await platform.k("wait --for=condition=Running function/seen --timeout=60s");
  const memory = () => memoryOf(platform.pid).pss;
  // The start's garbage is collected while the platform works.
  for (let call = 0; call < 20; call++) await platform.k("get functions,pods -A");
  const before = await settledMemory(memory);
  const { page } = await user.open("/functions");
  const places = ["events", "builds", "calls", "registry", "nodes", "settings"];
  const tabs = ["logs", "metrics", "history"].map((tab) => `functions/default/seen/${tab}`);
  for (const place of [...places, ...tabs]) {
    await user.goTo(page, `/${place}`);
    await page.getByRole("main").waitFor();
    await pause(500);
  }
  await page.context().close();
  const after = await settledMemory(memory);
  const megabytes = (after - before) / 1e6;
  console.log(`${megabytes.toFixed(1)} MB more than ${(before / 1e6).toFixed(0)} MB`);
  expect(megabytes).toBeLessThan(limitMegabytes);
});
