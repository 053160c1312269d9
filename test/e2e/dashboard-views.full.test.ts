/** What is around Functions on the dashboard: WebSockets, errors, schedules, calls, settings. */
import { expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;
const running = (name: string) =>
  platform.k(`wait --for=condition=Running function/${name} --timeout=60s`);

test("a WebSocket of a Function is talked to", async () => {
  const source = `module.exports = {
    main: () => "plain",
    websocket(socket) {
      socket.send("hello");
      socket.addEventListener("message", ({ data }) => socket.send(data + "!"));
    },
  };`;
  await platform.k("apply -f -", functionManifest("chat", source));
  await running("chat");
  const { page, complaints } = await user.open("/functions/default/chat/try");
  await page.getByRole("button", { name: "WebSocket" }).click();
  await page.getByRole("button", { name: "Connect" }).click();
  const messages = page.getByTestId("messages");
  await messages.getByText("hello").waitFor();
  await page.getByLabel("Message", { exact: true }).fill("are you there");
  await page.keyboard.press("Enter");
  await messages.getByText("are you there!").waitFor();
  await user.shot(page, "websocket");
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Connect" }).waitFor();
  expect(complaints).toEqual([]);
});

test("the last errors are shown with their stacks and lead to the line", async () => {
  const source = `module.exports = {\n  main(event) {\n    return event.missing.name;\n  },\n};`;
  await platform.k("apply -f -", functionManifest("broken", source));
  await running("broken");
  await platform.callUntil("broken.default", ({ status }) => status === 500);
  const { page, complaints } = await user.open("/functions/default/broken/logs");
  const errors = page.getByRole("region", { name: "Last errors" });
  await errors.getByText("reading 'name'").first().click();
  await errors.getByText("return event.missing.name;").first().waitFor();
  await user.shot(page, "last-errors");
  await errors.getByRole("link", { name: "handler.js, line 3" }).first().click();
  await page.waitForURL("**/code?line=3");
  expect(complaints).toEqual([]);
});

test("schedules are added, suspended and run, and calls are seen and cancelled", async () => {
  const source = `module.exports = { main: () => "done by itself" };`;
  await platform.k("apply -f -", functionManifest("nightly", source));
  await running("nightly");
  const { page, complaints } = await user.open("/functions/default/nightly/settings");
  await page.getByRole("button", { name: "Schedule", exact: true }).click();
  await page.getByLabel("Name of schedule 1").fill("clean");
  await page.getByLabel("Cron expression of schedule 1").fill("0 3 * * *");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("nightly is applied.").waitFor();
  await page.getByRole("link", { name: "Calls" }).click();
  const schedule = page.getByRole("row").filter({ hasText: "clean" }).first();
  await schedule.getByText("active").waitFor();
  await schedule.getByRole("button", { name: "Run now" }).click();
  const call = page.getByRole("row").filter({ hasText: "schedule clean" });
  await call.getByText("succeeded").waitFor();
  await user.shot(page, "calls");
  await call.getByRole("button", { name: "Details" }).click();
  await page.getByRole("dialog").getByText("done by itself").waitFor();
  await user.shot(page, "call");
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await schedule.getByRole("button", { name: "Suspend" }).click();
  await schedule.locator(".state", { hasText: "suspended" }).waitFor();
  expect(await platform.k("get function nightly -o jsonpath={.spec.schedules[0].suspend}")).toBe(
    "true",
  );
  // A call that is not due for an hour is cancelled.
  const later = { prefer: "respond-async", "x-async-delay": "3600" };
  const url = new URL(`/fn/default/nightly/`, platform.endpoints.gateway);
  expect((await fetch(url, { headers: later })).status).toBe(202);
  const waiting = page.getByRole("row").filter({ hasText: "not before" });
  await waiting.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("row").filter({ hasText: "cancelled" }).waitFor();
  expect(complaints).toEqual([]);
});

test("the platform's settings are edited, and what is not valid is refused", async () => {
  const { page, complaints } = await user.open("/settings");
  const begin = page.getByRole("button", { name: "Change settings" });
  const editor = page.getByRole("textbox", { name: /^Settings of/ });
  const asYaml = page.getByText("All settings, as YAML");
  await begin.or(asYaml).first().waitFor();
  if (await begin.isVisible()) await begin.click();
  await asYaml.click();
  const type = async (text: string) => {
    await editor.click();
    await page.keyboard.press("ControlOrMeta+a");
    // Chromium keeps the colour of replaced text with an inline style, which the policy refuses.
    await page.keyboard.press("Delete");
    await page.keyboard.insertText(text);
  };
  await type("defaultRuntimePodPreset: 7");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("The settings were not applied").waitFor();
  await type("defaultRuntimePodPreset: L");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("The settings are applied.").waitFor();
  await user.shot(page, "settings");
  const get = "get serverlesses -A -o jsonpath={.items[0].spec.defaultRuntimePodPreset}";
  expect(await platform.k(get)).toBe("L");
  expect(complaints).toEqual([]);
});

/** Many of a user's keys between two frames, as on a machine with other work. */
test.each(["Source", "Dependencies"])(
  "%s: Tab and fast typing neither freeze the page nor change the text",
  async (what) => {
    const name = what.toLowerCase();
    const source = `module.exports = { main: () => "typed" };`;
    await platform.k("apply -f -", functionManifest(name, source));
    await running(name);
    const { page, complaints } = await user.open(`/functions/default/${name}`);
    const editor = page.getByRole("textbox", { name: `${what} of ${name}`, exact: true });
    await editor.and(page.locator(".cm-content")).click();
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("Emulation.setCPUThrottlingRate", { rate: 8 });
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.press("Delete");
    await page.keyboard.press("Tab");
    const text = "abcdefghijklmnopqrstuvwxyz".repeat(8);
    await Promise.all(text.split("").map((letter) => page.keyboard.insertText(letter)));
    await page.keyboard.press("Home");
    await page.keyboard.press("Tab");
    await devtools.send("Emulation.setCPUThrottlingRate", { rate: 1 });
    await expect.poll(async () => (await editor.textContent())?.trim()).toBe(text);
    await page.getByRole("button", { name: "Discard" }).click();
    await expect.poll(() => editor.textContent()).not.toContain(text);
    expect(complaints).toEqual([]);
  },
);
