/** The dashboard as its users see it: a real Chromium at a running platform. */
import { existsSync } from "node:fs";
import path from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { Platform } from "./platform.ts";

/** Debian's; another one by its path. */
const executablePath = process.env["SPRY_TEST_CHROMIUM"] ?? "/usr/bin/chromium";
/** Where screenshots go, for people to look at. Without it there are none. */
const shots = process.env["SPRY_TEST_SCREENSHOTS"];

const startMs = 120_000;

export interface DashboardTab {
  page: Page;
  /** Errors that the browser has reported: of scripts, and violations of the page's policy. */
  complaints: string[];
}

/** A platform and a browser for all tests of a file, which are skipped without Chromium. */
export class DashboardUser {
  readonly platform: Platform;
  #browser: Browser | undefined;

  /** With `port`, the dashboard has the same one after a restart. */
  constructor({ port = 0 }: { port?: number } = {}) {
    this.platform = new Platform({ args: ["--no-example", `--dashboard-port=${port}`] });
    beforeAll(async () => {
      if (!existsSync(executablePath)) return;
      const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
      const [browser] = await Promise.all([
        chromium.launch({ executablePath, args }),
        this.platform.start(),
      ]);
      this.#browser = browser;
    }, startMs);
    beforeEach((context) => {
      if (!existsSync(executablePath)) context.skip(`there is no Chromium at ${executablePath}`);
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
  async tab(options: BrowserContextOptions = {}): Promise<DashboardTab> {
    const context = await this.browser.newContext(options);
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on("pageerror", (error) => complaints.push(String(error.stack)));
    page.on("console", (message) => {
      // A refused request is the page's to handle; the browser reports it all the same.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
        complaints.push(message.text());
    });
    return { page, complaints };
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

  async shot(page: Page, name: string): Promise<void> {
    if (shots) await page.screenshot({ path: path.join(shots, `${name}.png`) });
  }
}
