/** The dashboard for everyone: by keyboard alone, on a phone, and by the rules of WCAG 2.2 AA. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;

const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;
const apply = (name: string, source: string) =>
  platform.k("apply -f -", functionManifest(name, source));
const running = (name: string) =>
  platform.k(`wait --for=condition=Running function/${name} --timeout=60s`);

test("everything can be reached by the keyboard", async () => {
  await apply("keys", answering("keys"));
  const { page } = await user.open("/functions");
  await page.getByRole("link", { name: /^keys/ }).waitFor();
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("keys default");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/functions/default/keys");
  await page.keyboard.press("g");
  await page.keyboard.press("b");
  await page.waitForURL("**/builds");
  await page.keyboard.press("n");
  await page.waitForURL("**/new");
  await page.goBack();
  await page.waitForURL("**/builds");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await page.keyboard.press("Escape");
  await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
});

test("what is typed at once is not lost, and Enter waits for Functions that are on their way", async () => {
  await apply("keys", answering("keys"));
  const { page } = await user.open("/nodes");
  await page.getByRole("main").waitFor();
  // Between two keys there is time for what the first has set off, but not for a frame.
  const focused = await page.evaluate(async () => {
    dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true }));
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    return document.activeElement?.getAttribute("role");
  });
  expect(focused).toBe("combobox");
  await page.keyboard.press("Escape");
  // The page draws for longer than the user needed for both keys.
  await page.evaluate(() => {
    const [first, second] = ["g", "b"].map(
      (key) => new KeyboardEvent("keydown", { key, bubbles: true }),
    );
    document.body.dispatchEvent(first!);
    for (const end = performance.now() + 2_000; performance.now() < end;);
    document.body.dispatchEvent(second!);
  });
  await page.waitForURL("**/builds");
  await user.goTo(page, "/nodes");
  let answer = () => {};
  const held = new Promise<void>((resolve) => (answer = resolve));
  await page.reload();
  await page.route(/\/k8s\/.*\/functions\b/, async (route) => {
    await held;
    await route.continue();
  });
  await page.getByRole("main").waitFor();
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("keys default");
  await page.getByText("Looking …").waitFor();
  await page.keyboard.press("Enter");
  answer();
  await page.waitForURL("**/functions/default/keys");
});

test("a Function is created, edited, applied and deleted without a mouse", async () => {
  const { page, complaints } = await user.open("/functions");
  await page.getByRole("main").waitFor();
  await page.keyboard.press("ControlOrMeta+k");
  await page.getByRole("combobox", { name: "Commands and Functions" }).waitFor();
  await page.keyboard.type("create");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/new");
  await page.getByRole("radio", { name: /HTTP, JavaScript/ }).waitFor();
  await tabTo(page, /^HTTP/);
  await page.keyboard.press("ArrowRight");
  await expect.poll(() => focused(page)).toMatch(/^HTTP, ?JavaScript/);
  await tabTo(page, /^Name$/);
  await page.keyboard.type("tabbed");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/functions/default/tabbed");
  await expect.poll(() => page.getByTestId("state").textContent()).toBe("Running");
  await tabTo(page, /^Source of tabbed$/);
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(answering("typed"));
  await tabTo(page, /^Apply$/);
  await page.keyboard.press("Enter");
  await platform.callUntil("tabbed.default", ({ body }) => body === "typed");
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("tabbed");
  await page.keyboard.press("Enter");
  await tabTo(page, /^Views of the Function: Settings$/);
  await page.keyboard.press("Enter");
  await page.waitForURL("**/tabbed/settings");
  await tabTo(page, /^Delete this Function/);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Delete Function tabbed?" }).waitFor();
  await tabTo(page, /^Delete$/);
  await page.keyboard.press("Enter");
  await expect.poll(() => platform.k("get functions -o name")).not.toContain("/tabbed");
  expect(complaints).toEqual([]);
});

/** What has the focus, by its label or text; links of a named navigation with its name. */
const focused = (page: Page): Promise<string> =>
  page.evaluate(() => {
    let element = document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    if (!element) return "";
    const label =
      element.getAttribute("aria-label") ??
      (element as HTMLInputElement).labels?.[0]?.textContent ??
      element.textContent;
    const nav = element.closest("nav")?.getAttribute("aria-label");
    return `${nav ? `${nav}: ` : ""}${label?.trim()}`;
  });

/** By Tab alone. Fails when nothing of that name is reached. */
async function tabTo(page: Page, wanted: RegExp): Promise<void> {
  const passed: string[] = [];
  let name = await focused(page);
  for (let count = 0; count < 80; count++) {
    // In an editor Tab indents; after Escape it leaves.
    if (/^(?:Source|Dependencies) of/.test(name)) await page.keyboard.press("Escape");
    await page.keyboard.press("Tab");
    name = await focused(page);
    if (wanted.test(name)) return;
    passed.push(name.slice(0, 40));
  }
  throw new Error(`Tab does not reach ${wanted}, but ${passed.join(" | ")}`);
}

describe("WCAG 2.2 AA", () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  const tabs = [
    "code",
    "try",
    "logs",
    "metrics",
    "settings",
    "history",
    "builds",
    "events",
    "yaml",
  ];
  const places = [
    "/functions",
    "/new",
    "/apirules",
    "/events",
    "/builds",
    "/calls",
    "/registry",
    "/nodes",
    "/settings",
    "/nowhere",
    ...tabs.map((tab) => `/functions/default/checked/${tab}`),
  ];

  test.each([
    ["light", 1280],
    ["dark", 390],
    ["light", 390],
    ["dark", 1280],
  ] as const)("axe finds nothing: %s, %i px", async (colorScheme, width) => {
    await apply("checked", answering("checked"));
    await running("checked");
    const { page, complaints } = await user.open("/functions", {
      colorScheme,
      viewport: { width, height: 844 },
      // Its script is not the page's.
      bypassCSP: true,
    });
    await page.addScriptTag({ content: axe });
    const found: string[] = [];
    for (const place of places) {
      await user.goTo(page, place);
      await page.locator("main").waitFor();
      await expect.poll(() => page.locator("main").textContent()).not.toBe("");
      // What is loaded later (an editor, a list) belongs to the page, too.
      await page.waitForTimeout(400);
      const violations = await page.evaluate(async () => {
        const { axe } = globalThis as unknown as {
          axe: {
            run(
              options: object,
            ): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
          };
        };
        const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
        return (await axe.run({ runOnly: tags })).violations;
      });
      found.push(
        ...violations.map(
          ({ id, nodes }) =>
            `${place}: ${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`,
        ),
      );
      // Nothing is wider than a phone.
      const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      if (isWide) found.push(`${place}: wider than the screen`);
      await user.shot(page, `${colorScheme}-${width}${place.replaceAll("/", "-")}`);
    }
    expect(found).toEqual([]);
    expect(complaints).toEqual([]);
  });
});
