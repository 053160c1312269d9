/** The dashboard's main journey, as its users live it: log in, see, change, call. */
import { expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;

const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;

test("npm start prints a link that logs in once", async () => {
  const link = /http:\/\/127\.0\.0\.1:\d+\/#code=[\w-]+/.exec(platform.output)?.[0] ?? "";
  const { page, complaints } = await user.tab();
  await page.addInitScript(() =>
    addEventListener("DOMContentLoaded", () =>
      Object.assign(window, { addressAtStart: location.href }),
    ),
  );
  await page.goto(link);
  await page.getByRole("heading", { name: "No Functions yet" }).waitFor();
  // The code is out of the address before the first frame: what navigates then does not lose it.
  expect(await page.evaluate(() => Reflect.get(window, "addressAtStart"))).toBe(`${user.origin}/`);
  // The code stays neither in the address nor in a cookie.
  expect(page.url()).toBe(`${user.origin}/`);
  expect(await page.context().cookies()).toEqual([]);
  const other = await user.tab();
  await other.page.goto(link);
  await other.page.getByText("This link has been used or has expired").waitFor();
  // A reload, and a second tab next to it, need no login.
  await page.reload();
  await page.getByRole("heading", { name: "No Functions yet" }).waitFor();
  const second = await page.context().newPage();
  await second.goto(`${user.origin}/functions`);
  await second.getByRole("heading", { name: "No Functions yet" }).waitFor();
  expect([...complaints, ...other.complaints]).toEqual([]);
});

test("a Function appears in the list, is edited, runs the new code, and answers in the console", async () => {
  const { page, complaints } = await user.open();
  await page.getByRole("heading", { name: "No Functions yet" }).waitFor();
  await platform.k("apply -f -", functionManifest("dice", answering("one")));
  const row = page.getByRole("link", { name: /^dice/ });
  await row.filter({ hasText: "Running" }).waitFor();
  await user.shot(page, "list");
  await row.click();
  const state = page.getByTestId("state");
  await expect.poll(() => state.textContent()).toBe("Running");
  await page.getByLabel("Source of dice").click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(answering("two"));
  await page.getByText("Changes not applied.").waitFor();
  await user.shot(page, "edited");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("dice is applied.").waitFor();
  await platform.callUntil("dice.default", ({ body }) => body === "two");
  await expect.poll(() => state.textContent()).toBe("Running");
  await page.getByRole("link", { name: "Try it" }).click();
  await page.getByRole("button", { name: "Send" }).click();
  await expect.poll(() => page.getByTestId("answer").textContent()).toContain("two");
  await user.shot(page, "answer");
  expect(complaints).toEqual([]);
});
