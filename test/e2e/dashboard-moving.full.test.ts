/** Moving about: focus, titles, what Back closes, small screens, questions before what is probably wrong, and the platform's settings. */
import { type Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;

const code = 'module.exports = { main: () => "ok" };';
const apply = (name: string, source = code, spec: Record<string, unknown> = {}) =>
  platform.k("apply -f -", functionManifest(name, source, spec));
const focused = (page: Page) =>
  page.evaluate(() => {
    let element = document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    return element?.getAttribute("aria-label") ?? element?.tagName ?? "";
  });

async function type(page: Page, label: string, text: string): Promise<void> {
  await page.getByLabel(label, { exact: true }).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

describe("code that the editor marks red", () => {
  test("is applied only after a question", async () => {
    await apply("red");
    const { page, complaints } = await user.open("/functions/default/red");
    await type(page, "Source of red", "module.exports = { main: () => (");
    await page.keyboard.press("ControlOrMeta+s");
    const dialog = page.getByRole("dialog", { name: "handler.js has a syntax error" });
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(await platform.k("get function red -o jsonpath={.spec.source.inline.source}")).toBe(
      code,
    );
    await page.getByText("Changes not applied.").waitFor();
    await page.keyboard.press("ControlOrMeta+s");
    await dialog.getByRole("button", { name: "Apply all the same" }).click();
    await page.getByText("red is applied.").waitFor();
    // A change of something else asks nothing.
    await user.goTo(page, "/functions/default/red/settings");
    await page.getByRole("button", { name: "Variable", exact: true }).click();
    await page.getByLabel("Name of variable 1").fill("A");
    await page.keyboard.press("ControlOrMeta+s");
    await expect.poll(() => page.locator(".savebar").count()).toBe(0);
    expect(await page.getByRole("dialog").count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test("is created only after a question", async () => {
    const { page } = await user.open("/new");
    await page.getByRole("radio", { name: /HTTP, JavaScript/ }).click();
    await page.getByLabel("Name", { exact: true }).fill("red-new");
    await type(page, "Source", "export default {");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "handler.js has a syntax error" });
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await dialog.getByRole("button", { name: "Create all the same" }).click();
    await page.waitForURL("**/functions/default/red-new");
  });
});

test("Create offers no namespaces of the system, and a wrong name turns red", async () => {
  const { page } = await user.open("/new");
  const options = page.getByLabel("Namespace", { exact: true }).locator("option");
  await expect.poll(() => options.allTextContents()).toContain("default");
  expect((await options.allTextContents()).join()).not.toMatch(/kube-|kyma-/);
  const name = page.getByLabel("Name", { exact: true });
  await name.fill("Not A Name");
  await expect.poll(() => name.getAttribute("aria-invalid")).toBe("true");
  const colours = () =>
    name.evaluate((field) => [
      getComputedStyle(field).borderColor,
      getComputedStyle(field.closest(".field")!.querySelector(".error")!).color,
    ]);
  const [border, text] = await colours();
  expect(border).toBe(text);
  // The attempt to create it leads to the field.
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await expect.poll(() => name.evaluate((field) => field === document.activeElement)).toBe(true);
});

test("Back closes what is open over a view", async () => {
  await apply("open");
  const { page } = await user.open("/functions");
  await user.goTo(page, "/functions/default/open/code");
  await user.goTo(page, "/functions/default/open/settings");
  await page.getByRole("button", { name: "Variable", exact: true }).click();
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByRole("dialog").waitFor();
  await page.goBack();
  await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  await user.goTo(page, "/functions/default/open/settings");
  await page.getByRole("button", { name: "Delete this Function" }).click();
  await page.getByRole("dialog").waitFor();
  await page.goBack();
  await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  await page.keyboard.press("ControlOrMeta+k");
  await page.getByRole("dialog").waitFor();
  await page.goBack();
  await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
});

test("no message covers Apply", async () => {
  await apply("covered");
  for (const width of [1280, 390, 320]) {
    const { page } = await user.open("/functions/default/covered/settings", {
      viewport: { width, height: 800 },
    });
    for (let count = 0; count < 2; count++) {
      await page.getByRole("button", { name: "Variable", exact: true }).click();
      await page.locator(".savebar").getByRole("button", { name: "Discard" }).click();
      await page.getByText("Your changes were discarded.").first().waitFor();
    }
    await page.getByRole("button", { name: "Variable", exact: true }).click();
    const boxes = await page.evaluate(() =>
      [".toasts", ".savebar"].map((each) => {
        const { top, bottom } = document.querySelector(each)!.getBoundingClientRect();
        return { top, bottom };
      }),
    );
    expect(boxes[0]!.bottom, `${width} px`).toBeLessThanOrEqual(boxes[1]!.top);
    await page.locator(".savebar").getByRole("button", { name: "Discard" }).click();
    await page.context().close();
  }
});

test("the focus is never lost, and each tab has its title", async () => {
  await apply("focus", code, {
    env: ["A", "B", "C"].map((name) => ({ name, value: "x" })),
  });
  const { page, complaints } = await user.open("/functions");
  await page.getByRole("link", { name: /^focus/ }).click();
  await page.waitForURL("**/functions/default/focus");
  await expect.poll(() => focused(page)).toBe("MAIN");
  await page.locator('nav.tabs a[href$="/settings"]').click();
  await page.getByRole("button", { name: "Remove variable B" }).click();
  await expect.poll(() => focused(page)).toBe("Remove variable C");
  await page.getByRole("button", { name: "Remove variable C" }).click();
  await expect.poll(() => focused(page)).toBe("Remove variable A");
  await page.getByRole("button", { name: "Remove variable A" }).click();
  await expect
    .poll(() => page.evaluate(() => document.activeElement?.textContent))
    .toBe("Variable");
  await page.locator(".savebar").getByRole("button", { name: "Discard" }).click();
  await expect.poll(() => focused(page)).toBe("MAIN");
  const titles = new Set<string>();
  const tabs = await page.locator("nav.tabs a").all();
  for (const tab of tabs) {
    await tab.click();
    await expect.poll(() => tab.getAttribute("aria-current")).toBe("page");
    titles.add(await page.title());
  }
  expect(titles.size).toBe(tabs.length);
  // The first key of a page leads past the navigation.
  await page.reload();
  await page.locator("nav.tabs").waitFor();
  await page.keyboard.press("Tab");
  await expect
    .poll(() => page.evaluate(() => document.activeElement?.textContent))
    .toBe("Skip to the content");
  await page.keyboard.press("Enter");
  await expect.poll(() => focused(page)).toBe("MAIN");
  expect(complaints).toEqual([]);
});

test("a WebSocket's console keeps its address, and Ctrl-Enter sends a request", async () => {
  await apply("console");
  await platform.k("wait --for=condition=Running function/console --timeout=60s");
  const { page } = await user.open("/functions/default/console/try?with=websocket");
  const address = page.getByLabel("Path and query");
  await address.fill("/chat?room=1");
  await page.locator('nav.tabs a[href$="/code"]').click();
  await page.reload();
  await user.goTo(page, "/functions/default/console/try?with=websocket");
  await expect.poll(() => address.inputValue()).toBe("/chat?room=1");
  await page.getByRole("button", { name: "Request", exact: true }).click();
  await page.getByLabel("Path and query").click();
  await page.keyboard.press("ControlOrMeta+Enter");
  await page.getByText("200").first().waitFor();
});

describe("a small screen", () => {
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
    ...tabs.map((tab) => `/functions/default/small/${tab}`),
  ];

  // 640 px of a screen of 1280 are 200 % of zoom.
  test.each([320, 390, 640])("of %i px has everything on it", async (width) => {
    await apply("small", code, { schedules: [{ name: "nightly", cron: "0 3 * * *" }] });
    await platform.k("wait --for=condition=Running function/small --timeout=60s");
    const { page, complaints } = await user.open("/functions", {
      viewport: { width, height: 700 },
    });
    const beyond: string[] = [];
    for (const place of places) {
      await user.goTo(page, place);
      await expect.poll(() => page.locator("main").textContent()).not.toBe("");
      await page.waitForLoadState("networkidle").catch(() => {});
      const found = await page.evaluate(() => {
        const isOff = (element: Element) => {
          const { left, right, width } = element.getBoundingClientRect();
          return width > 0 && (right > innerWidth + 1 || left < -1);
        };
        const cells = "td, th, .vrow span, button, input, select, a.button, h1, h2";
        const wide = document.documentElement.scrollWidth > innerWidth ? ["the page"] : [];
        // Tabs are scrolled, and the list of sections.
        const off = [...document.querySelectorAll(`main :is(${cells})`)].filter(
          (each) => isOff(each) && !each.closest(".tabs, dialog"),
        );
        return [...wide, ...off.map((each) => each.outerHTML.slice(0, 100))];
      });
      beyond.push(...found.map((each) => `${place}: ${each}`));
      await user.shot(page, `small-${width}${place.replaceAll("/", "-")}`);
    }
    expect(beyond).toEqual([]);
    expect(complaints).toEqual([]);
  });
});

describe("the platform's settings", () => {
  const spec = async () => {
    const found = await platform.k("get serverlesses -A -o jsonpath={.items[*].spec}");
    return JSON.parse(found || "{}") as Record<string, unknown>;
  };

  test("are changed in a form, or cancelled; what is typed outlives a reload", async () => {
    const { page, complaints } = await user.open("/settings");
    await page.getByText("Everything is at its default").waitFor();
    await page.getByRole("button", { name: "Change settings" }).click();
    await page.getByLabel("Size of Functions").selectOption("L");
    await page.getByText("Not applied yet.").waitFor();
    await page.reload();
    await expect.poll(() => page.getByLabel("Size of Functions").inputValue()).toBe("L");
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("Everything is at its default").waitFor();
    await page.getByRole("button", { name: "Change settings" }).click();
    expect(await page.getByLabel("Size of Functions").inputValue()).toBe("");
    await page.getByLabel("Size of Functions").selectOption("M");
    await page.getByLabel("Builds at once").fill("3");
    await user.shot(page, "settings-form");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("The settings are applied.").waitFor();
    expect(await spec()).toEqual({
      defaultRuntimePodPreset: "M",
      functionBuildMaxSimultaneousJobs: "3",
    });
    expect(complaints).toEqual([]);
  });

  test("have the others as YAML, explained and completed, and keep what another user changes", async () => {
    const { page } = await user.open("/settings");
    await page.getByText("All settings, as YAML").click();
    const editor = page.getByRole("textbox", { name: /^Settings of/ });
    await expect.poll(() => editor.textContent()).toContain("# how long a liveness check may wait");
    await editor.and(page.locator(".cm-content")).click();
    await page.keyboard.press("ControlOrMeta+End");
    await page.keyboard.type("healthz");
    await page.getByText("healthzLivenessTimeout").last().waitFor();
    await page.keyboard.press("Control+Space");
    await page.locator(".cm-tooltip-autocomplete li").first().waitFor();
    await page.keyboard.press("Enter");
    await page.keyboard.type("20s");
    await page.getByText("Not applied yet.").waitFor();
    const [, name] = (await platform.k("get serverlesses -A --no-headers")).split(/\s+/);
    await platform.k(
      `patch serverless ${name} -n kyma-system --type=merge -p {"spec":{"logLevel":"debug"}}`,
    );
    await page.getByText("Another user has changed these settings meanwhile").waitFor();
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("The settings are applied.").waitFor();
    expect(await spec()).toMatchObject({
      defaultRuntimePodPreset: "M",
      healthzLivenessTimeout: "20s",
      logLevel: "debug",
    });
  });
});
