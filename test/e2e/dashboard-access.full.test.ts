/** The dashboard for everyone: by keyboard alone, on a phone, and by the rules of WCAG 2.2 AA. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
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
