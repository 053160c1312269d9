/** A list of 300 Functions, and the editor with a large source, at an API server without a controller. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type ApiServer, createApiServer } from "@spry/apiserver";
import { buildWeb, type Dashboard, startDashboard } from "@spry/dashboard";
import { functionCrd, functionRevisions, functions, labels } from "@spry/function";
import { KubeClient, resources } from "@spry/kube";
import { type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  type DashboardTab,
  launchBrowser,
  openTab,
  screenshot,
  whyNoBrowser,
} from "../support/browser.ts";
import { untilTrue } from "../support/until-true.ts";

const count = 300;
const reason = whyNoBrowser();
const scratch = mkdtempSync(path.join(tmpdir(), "dashboard-list-"));
const large = "large-source";
const source = `module.exports = { main: () => "x" };\n${`// ${"x".repeat(97)}\n`.repeat(9_000)}`;
let api: ApiServer;
let client: KubeClient;
let dashboard: Dashboard;
let browser: Browser;

beforeAll(async () => {
  if (reason !== undefined) return;
  browser = await launchBrowser();
  api = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(api.transport(), { fieldManager: "spry-test" });
  await client.create(resources.customResourceDefinitions, functionCrd());
  const isServed = () =>
    client.list(functions).then(
      () => true,
      () => false,
    );
  await untilTrue("Functions are served", isServed, 10_000);
  for (let n = 1; n <= count; n++)
    await client.create(functions, {
      metadata: { name: `fn-${n}`, namespace: "default" },
      spec: {
        runtime: n % 2 ? "nodejs24" : "python312",
        source: { inline: { source: "x" } },
      },
    });
  dashboard = await startDashboard({
    host: "127.0.0.1",
    port: 0,
    key: randomBytes(32),
    version: "test",
    gateway: new URL("http://localhost:8080"),
    web: () => buildWeb(scratch),
    access: { asOwner: api.transport(), withToken: api.transport() },
  });
}, 120_000);
beforeEach((context) => {
  if (reason !== undefined) context.skip(reason);
});
afterAll(async () => {
  await browser?.close();
  await dashboard?.close();
  await api?.close();
  rmSync(scratch, { recursive: true, force: true });
});

async function open(at: string, width = 1280): Promise<DashboardTab> {
  const tab = await openTab(browser, { viewport: { width, height: 800 } });
  const [, fragment] = dashboard.loginUrl().split("#");
  await tab.page.goto(`${dashboard.url}${at}#${fragment}`);
  await tab.page.getByRole("navigation", { name: "Sections" }).waitFor();
  return tab;
}

const rows = (page: Page) => page.locator("a.vrow .name");
const scrolled = (page: Page) => page.locator(".vlist").evaluate(({ scrollTop }) => scrollTop);

describe("the list", () => {
  test("is in the order of the numbers, is sorted by its columns, and leads to each URL", async () => {
    const { page, complaints } = await open("/functions");
    await rows(page).first().waitFor();
    const names = async () => (await rows(page).allTextContents()).slice(0, 3);
    expect(await names()).toEqual(["fn-1", "fn-2", "fn-3"]);
    await page.getByTitle("Sort by name", { exact: true }).click();
    await expect.poll(names).toEqual(["fn-300", "fn-299", "fn-298"]);
    await page.getByTitle("Sort by runtime").click();
    await expect.poll(names).toEqual(["fn-1", "fn-3", "fn-5"]);
    await page.getByTitle("Sort by runtime").click();
    await expect.poll(async () => (await names())[0]).toMatch(/^fn-\d*[02468]$/);
    // The address has the order, for a reload and for others.
    await page.reload();
    await expect.poll(async () => (await names())[0]).toMatch(/^fn-\d*[02468]$/);
    await page.getByTitle("Sort by name", { exact: true }).click();
    await expect.poll(names).toEqual(["fn-1", "fn-2", "fn-3"]);
    expect(
      await page.getByLabel("Open the URL of fn-2", { exact: true }).getAttribute("href"),
    ).toBe("http://fn-2.default.localhost:8080/");
    await screenshot(page, "list");
    expect(complaints).toEqual([]);
  });

  test("says when each was deployed last", async () => {
    const target = { namespace: "default", name: "fn-7" };
    const fn = await client.get(functions, target);
    await client.create(functionRevisions, {
      metadata: {
        name: "fn-7-1",
        namespace: "default",
        labels: { [labels.functionName]: "fn-7" },
      },
      revision: 1,
      data: { spec: fn.spec, image: "x", buildKey: "k", time: new Date().toISOString() },
    });
    await client.patch(functions, target, { status: { revision: 1 } }, { subresource: "status" });
    const { page } = await open("/functions");
    const row = page.locator("a.vrow").filter({ has: page.getByText("fn-7", { exact: true }) });
    await expect.poll(() => row.locator("time").count()).toBe(2);
  });

  test("is as it was left after Back: how far it was scrolled, and which row had the focus", async () => {
    const { page, complaints } = await open("/functions");
    await rows(page).first().waitFor();
    await page.locator(".vlist").evaluate((list) => list.scrollTo(0, 6_000));
    const row = page.locator("a.vrow").filter({ has: page.getByText("fn-140", { exact: true }) });
    await row.focus();
    const before = await scrolled(page);
    await page.keyboard.press("Enter");
    await page.waitForURL("**/functions/default/fn-140");
    // What is opened has the focus, not the document.
    await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).not.toBe("BODY");
    await page.goBack();
    await row.waitFor();
    await expect.poll(() => scrolled(page)).toBe(before);
    await expect
      .poll(() => page.evaluate(() => document.activeElement?.textContent ?? ""))
      .toContain("fn-140");
    await page.keyboard.press("ArrowDown");
    await expect
      .poll(() => page.evaluate(() => document.activeElement?.textContent ?? ""))
      .toContain("fn-141");
    expect(complaints).toEqual([]);
  });

  test("keeps the focus when its row is scrolled away and comes back", async () => {
    const { page } = await open("/functions");
    const first = page.locator("a.vrow").filter({ has: page.getByText("fn-2", { exact: true }) });
    await first.focus();
    await page.locator(".vlist").evaluate((list) => list.scrollTo(0, 9_000));
    await page.getByText("fn-200", { exact: true }).waitFor();
    expect(await first.evaluate((row) => row === document.activeElement)).toBe(true);
    await page.keyboard.press("ArrowDown");
    await expect
      .poll(() => page.evaluate(() => document.activeElement?.textContent ?? ""))
      .toContain("fn-3");
  });

  test("marks what has changes that are not applied", async () => {
    const { page } = await open("/functions/default/fn-3");
    const editor = page.getByLabel("Source of fn-3", { exact: true });
    await editor.click();
    await page.keyboard.insertText("// typed");
    await page.getByText("Changes not applied.").waitFor();
    await page.getByRole("link", { name: "Functions" }).first().click();
    await page.locator("a.vrow").filter({ hasText: "fn-3 changes not applied" }).waitFor();
  });
});

test("a key in a source of 0.9 MB costs the page less than 16 ms", async () => {
  await client.create(functions, {
    metadata: { name: large, namespace: "default" },
    spec: { runtime: "nodejs24", source: { inline: { source } } },
  });
  const { page, complaints } = await open(`/functions/default/${large}`);
  const editor = page.getByLabel(`Source of ${large}`, { exact: true });
  await editor.and(page.locator(".cm-content")).click();
  await page.keyboard.press("ControlOrMeta+Home");
  const devtools = await page.context().newCDPSession(page);
  // Of the thread, in which other programs of the machine take no part.
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  const worked = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return (metrics.find(({ name }) => name === "ScriptDuration")?.value ?? 0) * 1_000;
  };
  const costs: number[] = [];
  for (let key = 0; key < 40; key++) {
    const before = await worked();
    await page.keyboard.press("x");
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
    costs.push((await worked()) - before);
  }
  const [median = 0] = costs.toSorted((a, b) => a - b).slice(costs.length / 2);
  console.log(JSON.stringify({ median, most: Math.max(...costs) }));
  expect(median).toBeLessThan(16);
  await expect.poll(() => editor.textContent()).toContain("x".repeat(40));
  expect(complaints).toEqual([]);
});
