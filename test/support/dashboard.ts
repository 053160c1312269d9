/** The dashboard as its users see it: a real Chromium at a running platform. */
import { type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { type DashboardTab, launchBrowser, openTab, screenshot, whyNoBrowser } from "./browser.ts";
import { Platform } from "./platform.ts";

const startMs = 120_000;

/** A platform and a browser for all tests of a file, which are skipped without Chromium. */
export class DashboardUser {
  readonly platform: Platform;
  #browser: Browser | undefined;

  /** With `port`, the dashboard has the same one after a restart. */
  constructor({ port = 0 }: { port?: number } = {}) {
    this.platform = new Platform({ args: ["--no-example", `--dashboard-port=${port}`] });
    beforeAll(async () => {
      if (whyNoBrowser()) return;
      const [browser] = await Promise.all([launchBrowser(), this.platform.start()]);
      this.#browser = browser;
    }, startMs);
    beforeEach((context) => {
      const reason = whyNoBrowser();
      if (reason) context.skip(reason);
    });
    afterAll(async () => {
      await this.#browser?.close();
      await this.platform.remove();
    }, startMs);
  }

  get browser(): Browser {
    if (!this.#browser) throw new Error("the browser has not been started");
    return this.#browser;
  }

  get origin(): string {
    return new URL(this.platform.dashboard).origin;
  }

  /** A link for one login, as `spry dashboard` prints it. */
  async loginLink(): Promise<string> {
    const { dataDir } = this.platform;
    const { stdout, stderr } = await this.platform.spry([
      "dashboard",
      "--no-open",
      "--data-dir",
      dataDir,
    ]);
    const link = stdout.trim();
    if (!link.startsWith("http")) throw new Error(`spry dashboard: ${stderr}`);
    return link;
  }

  /** A tab, not logged in. */
  tab(options: BrowserContextOptions = {}): Promise<DashboardTab> {
    return openTab(this.browser, options);
  }

  /** A tab at a path, logged in with a link. */
  async open(at = "/functions", options: BrowserContextOptions = {}): Promise<DashboardTab> {
    const tab = await this.tab(options);
    await tab.page.goto(await this.loginLink());
    await tab.page.getByRole("navigation", { name: "Sections" }).waitFor();
    await this.goTo(tab.page, at);
    return tab;
  }

  /** To another view, as a link does. */
  async goTo(page: Page, to: string): Promise<void> {
    await page.evaluate((path) => {
      history.pushState(null, "", path);
      dispatchEvent(new PopStateEvent("popstate"));
    }, to);
  }

  shot(page: Page, name: string): Promise<void> {
    return screenshot(page, name);
  }
}
