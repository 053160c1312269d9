/** The dashboard while its platform crashes and comes back. */
import { expect, test } from "vitest";
import { freePort } from "@spry/test-kit";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser({ port: await freePort() });
const { platform } = user;

const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;

test("says that the connection is lost, connects again, and has lost nothing", async () => {
  await platform.k("apply -f -", functionManifest("kept", answering("before")));
  await platform.k("wait --for=condition=Running function/kept --timeout=60s");
  const { page } = await user.open("/functions/default/kept");
  const source = page.getByLabel("Source of kept", { exact: true });
  await source.click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(answering("typed"));
  await platform.kill();
  const banner = page.getByText("The connection was lost");
  await banner.waitFor();
  // What is applied meanwhile is not lost either.
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("The change was not applied").waitFor();
  await platform.start();
  await banner.waitFor({ state: "hidden" });
  expect(await source.textContent()).toContain("typed");
  // Changes of the time between, and those after it, are shown.
  await platform.k("annotate function kept seen=yes");
  await platform.k("scale function kept --replicas=2");
  await page.getByText("2 of 2 ready").waitFor();
  await page.getByRole("button", { name: "Apply" }).click();
  await platform.callUntil("kept.default", ({ body }) => body === "typed");
});
