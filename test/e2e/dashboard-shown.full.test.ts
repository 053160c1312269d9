/** What is shown is what is there: the output of what crashes, the version that serves, what one may not see. */
import { type Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;

const apply = (name: string, source: string, spec: Record<string, unknown> = {}) =>
  platform.k("apply -f -", functionManifest(name, source, spec));
const running = (name: string) =>
  platform.k(`wait --for=condition=Running function/${name} --timeout=60s`);
const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;

describe("logs", () => {
  test("stay in their box, follow, say what is missing, and can be read while more is written", async () => {
    const writes = `module.exports = { main(event) { const { n = "1", from = "0" } = event.extensions.request.query;
      for (let i = 0; i < Number(n); i++) console.log("line " + (Number(from) + i)); return "ok"; } };`;
    await apply("many", writes);
    await running("many");
    await platform.call("many.default", { path: "/?n=700" });
    const { page, complaints } = await user.open("/functions/default/many/logs");
    const log = page.getByRole("log");
    await log.getByText("line 699", { exact: true }).waitFor();
    const box = () =>
      log.evaluate(({ clientHeight, scrollHeight, scrollTop }) => ({
        clientHeight,
        isAtEnd: scrollHeight - scrollTop - clientHeight < 40,
      }));
    expect((await box()).clientHeight).toBeLessThan(900);
    await expect.poll(async () => (await box()).isAtEnd).toBe(true);
    await log.getByText("kubectl logs").waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await platform.call("many.default", { path: "/?n=10&from=1000" });
    await page.getByText("10 newer lines are not shown").waitFor();
    expect(await log.getByText("line 1009", { exact: true }).count()).toBe(0);
    await user.shot(page, "logs-paused");
    await page.getByRole("button", { name: "Follow" }).click();
    await log.getByText("line 1009", { exact: true }).waitFor();
    await expect.poll(async () => (await box()).isAtEnd).toBe(true);
    // The filter stays when the view is left.
    await page.getByLabel("Filter lines").fill("line 1005");
    await page.locator('nav.tabs a[href$="/settings"]').click();
    await page.locator('nav.tabs a[href$="/logs"]').click();
    expect(await page.getByLabel("Filter lines").inputValue()).toBe("line 1005");
    expect(complaints).toEqual([]);
  });

  test("show what a container wrote before it crashed", async () => {
    await apply("crashing", 'console.log("about to fail"); process.exit(3);');
    const { page } = await user.open("/functions/default/crashing/logs");
    await page.getByRole("log").getByText("about to fail").first().waitFor();
    await user.shot(page, "logs-crash");
  });
});

test("history marks what serves and why the newest does not, and offers the way back", async () => {
  await apply("back", answering("one"));
  await running("back");
  await apply("back", 'throw new Error("broken on purpose");');
  const { page, complaints } = await user.open("/functions/default/back/history");
  const row = (version: string) =>
    page.getByRole("row").filter({ has: page.getByText(version, { exact: true }) });
  await row("2").getByText("never ready").waitFor();
  await row("2").getByText("broken on purpose").first().waitFor();
  await row("1").getByText("serves 100 %").waitFor();
  expect(await row("2").getByRole("button", { name: "Roll back" }).count()).toBe(0);
  await user.shot(page, "history-failed");
  await row("1").getByRole("button", { name: "Roll back" }).click();
  await page.getByText("back returns to version 1").waitFor();
  await running("back");
  expect(complaints).toEqual([]);
});

/** A tab of a ServiceAccount that may read Functions, and not Pods. */
async function openAs(name: string): Promise<Page> {
  await platform.k(`create serviceaccount ${name}`);
  await platform.k(
    `create role ${name} --verb=get,list,watch --resource=functions.serverless.kyma-project.io`,
  );
  await platform.k(`create rolebinding ${name} --role=${name} --serviceaccount=default:${name}`);
  const token = (await platform.k(`create token ${name}`)).trim();
  const { page } = await user.tab();
  await page.goto(user.origin);
  await page.getByLabel("Or with a token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("navigation", { name: "Sections" }).waitFor();
  return page;
}

test("Pods that a user may not see are not none", async () => {
  await apply("hidden", answering("x"));
  await running("hidden");
  const page = await openAs("blind");
  await user.goTo(page, "/functions/default/hidden/logs");
  await page.getByText("The Pods cannot be seen").waitFor();
  await page.getByText("not visible to you").waitFor();
  expect(await page.getByText("No Pods").count()).toBe(0);
  await user.goTo(page, "/functions/default/hidden/builds");
  await page.getByText("The builds cannot be read").waitFor();
});
