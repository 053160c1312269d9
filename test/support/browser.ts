/** A real Chromium for tests of the dashboard. */
import { existsSync } from "node:fs";
import path from "node:path";
import { patience } from "@spry/test-kit";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

/** Debian's; another one by its path. */
const executablePath = process.env["SPRY_TEST_CHROMIUM"] ?? "/usr/bin/chromium";
/** Where screenshots go, for people to look at. Without it there are none. */
const shots = process.env["SPRY_TEST_SCREENSHOTS"];

/** Why no test can run here; undefined when they can. */
export const whyNoBrowser = (): string | undefined =>
  existsSync(executablePath) ? undefined : `there is no Chromium at ${executablePath}`;

export function launchBrowser(): Promise<Browser> {
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath, args });
}

export interface DashboardTab {
  page: Page;
  /** Errors that the browser has reported: of scripts, and violations of the page's policy. */
  complaints: string[];
}

/** A tab of its own, with nothing of other tabs. */
export async function openTab(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<DashboardTab> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(patience.platform);
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

export async function screenshot(page: Page, name: string): Promise<void> {
  if (shots) await page.screenshot({ path: path.join(shots, `${name}.png`) });
}
