/** Where what is typed stays, and for whom: deleted Functions, a full browser, logins that end. */
import { type Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;

const code = 'module.exports = { main: () => "ok" };';
const apply = (name: string, source = code) =>
  platform.k("apply -f -", functionManifest(name, source));

async function type(page: Page, label: string, text: string): Promise<void> {
  await page.getByLabel(label, { exact: true }).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

describe("a Function that is deleted while it is edited", () => {
  test("leaves what was typed as text, and can be created again with it", async () => {
    await apply("deleted");
    const { page, complaints } = await user.open("/functions/default/deleted");
    await type(page, "Source of deleted", "// typed");
    await platform.k("delete function deleted");
    await page.getByText("Function deleted not found").waitFor();
    await page.getByText("What was typed").click();
    await page.getByText("// typed").waitFor();
    await user.shot(page, "deleted-draft");
    await page.reload();
    await page.getByRole("button", { name: "Create it again" }).click();
    await page.waitForURL("**/new?ns=default");
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("deleted");
    await expect
      .poll(() => page.getByLabel("Source", { exact: true }).textContent())
      .toContain("// typed");
    expect(complaints).toEqual([]);
  });

  test("and made again under its name does not get the old changes by itself", async () => {
    await apply("again");
    const { page } = await user.open("/functions/default/again");
    await type(page, "Source of again", "// typed before");
    await platform.k("delete function again");
    await page.getByText("Function again not found").waitFor();
    await apply("again", "// made again");
    const editor = page.getByLabel("Source of again", { exact: true });
    await expect.poll(() => editor.textContent()).toContain("// made again");
    expect(await page.getByText("Changes not applied.").count()).toBe(0);
    await page.getByRole("button", { name: "Use it for the present again" }).click();
    await expect.poll(() => editor.textContent()).toContain("// typed before");
    await page.getByText("Changes not applied.").waitFor();
    expect(await page.getByText("was deleted while").count()).toBe(0);
  });
});

test("unfinished YAML stays when the other tabs are looked at", async () => {
  await apply("unfinished");
  const { page } = await user.open("/functions/default/unfinished/yaml");
  await type(page, "YAML of unfinished", "a: [");
  await page.getByText(/^Line 1: /).waitFor();
  await page.locator('nav.tabs a[href$="/code"]').click();
  await page.getByText("that you have typed cannot be read yet").waitFor();
  await page.getByLabel("Source of unfinished", { exact: true }).click();
  await page.keyboard.type("x");
  await page.locator('nav.tabs a[href$="/yaml"]').click();
  await expect
    .poll(() => page.getByLabel("YAML of unfinished", { exact: true }).textContent())
    .toContain("a: [");
});

test("code typed in Create comes back after a click on a template, and after Start over", async () => {
  const { page } = await user.open("/new");
  await page.getByRole("radio", { name: /HTTP, JavaScript/ }).click();
  const source = page.getByLabel("Source", { exact: true });
  for (const replace of ["Express", "Start over"]) {
    await type(page, "Source", "// my own");
    await (replace === "Start over"
      ? page.getByRole("button", { name: replace }).click()
      : page.getByRole("radio", { name: replace }).click());
    await expect.poll(() => source.textContent()).not.toContain("// my own");
    await page.getByRole("button", { name: "Undo" }).last().click();
    await expect.poll(() => source.textContent()).toContain("// my own");
  }
});

test("a Function in a namespace that does not exist is created with it", async () => {
  const { page } = await user.open("/new?ns=nowhere");
  await page.getByLabel("Name", { exact: true }).fill("pioneer");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("The Function was not created").waitFor();
  await user.shot(page, "create-failed");
  await page.getByRole("button", { name: "Create namespace nowhere, and the Function" }).click();
  await page.waitForURL("**/functions/nowhere/pioneer");
});

describe("a login that ends", () => {
  test("by Log out asks, and leaves nothing in any tab of this user", async () => {
    await apply("private", "// a secret");
    const { page } = await user.open("/functions/default/private");
    const second = await page.context().newPage();
    await second.goto(`${user.origin}/functions/default/private`);
    await second.getByLabel("Source of private", { exact: true }).waitFor();
    await type(page, "Source of private", "// typed");
    await page.getByRole("button", { name: "Log out" }).click();
    const dialog = page.getByRole("dialog", { name: "Log out and lose what is not applied?" });
    await user.shot(page, "log-out");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("Changes not applied.").waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await dialog.getByRole("button", { name: "Log out" }).click();
    for (const each of [page, second]) {
      await each.getByRole("heading", { name: "Log in to Spry" }).waitFor();
      expect(await each.content()).not.toContain("a secret");
      const kept = await each.evaluate(() => Object.keys(sessionStorage));
      expect(kept.filter((key) => key !== "spry.logged-out")).toEqual([]);
    }
    await page.reload();
    await page.getByRole("heading", { name: "Log in to Spry" }).waitFor();
  });

  test("by itself asks for another one, which Escape does not send away", async () => {
    await apply("expired");
    const { page } = await user.open("/functions/default/expired");
    await type(page, "Source of expired", "// typed");
    await page.route("**/k8s/**", (route) => route.fulfill({ status: 401, json: {} }));
    await page.getByRole("button", { name: "Apply" }).click();
    const dialog = page.getByRole("dialog", { name: "Log in again" });
    await dialog.waitFor();
    for (let i = 0; i < 5; i++) await page.keyboard.press("Escape");
    await dialog.getByLabel("Or with a token").fill("x");
    await page.unroute("**/k8s/**");
    const other = await page.context().newPage();
    await other.goto(await user.loginLink());
    await other.getByRole("navigation", { name: "Sections" }).waitFor();
    // A login by link is not handed to other tabs: this one asks for it.
    await page.reload();
    await page.getByText("Changes not applied.").waitFor();
    expect(await page.getByText("The change was not applied").count()).toBe(0);
  });
});
