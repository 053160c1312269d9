/** What is typed stays in the browser, encrypted, for the same user: large sources, several tabs, other users, a full disk, a week. */
import { type Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;

const code = 'module.exports = { main: () => "ok" };';
const apply = (name: string, source = code) =>
  platform.k("apply -f -", functionManifest(name, source));
const editorOf = (page: Page, name: string) =>
  page.getByLabel(`Source of ${name}`, { exact: true });

async function type(page: Page, name: string, text: string): Promise<void> {
  await editorOf(page, name).click();
  await page.keyboard.press("ControlOrMeta+Home");
  await page.keyboard.insertText(text);
}
const untilStored = (page: Page) => page.locator('.savebar[aria-busy="false"]').waitFor();

/** Everything that the browser's database has for this page, as text. */
const storedText = (page: Page): Promise<string[]> =>
  page.evaluate(async () => {
    const ended = <T>(request: IDBRequest<T>) =>
      new Promise<T>((resolve) => (request.onsuccess = () => resolve(request.result)));
    const db = await ended(indexedDB.open("spry"));
    const all = await ended(db.transaction("typed").objectStore("typed").getAll());
    db.close();
    return all.map(({ data }: { data: ArrayBuffer }) => new TextDecoder("latin1").decode(data));
  });

/** Another tab of the same browser, which gets its login from the first one. */
async function secondTab(page: Page, at: string): Promise<Page> {
  const second = await page.context().newPage();
  await second.goto(user.origin + at);
  return second;
}

async function tokenOf(name: string): Promise<string> {
  await platform.k(`create serviceaccount ${name}`);
  await platform.k(
    `create clusterrolebinding ${name} --clusterrole=cluster-admin --serviceaccount=default:${name}`,
  );
  return (await platform.k(`create token ${name}`)).trim();
}

async function logInWith(page: Page, token: string): Promise<void> {
  await page.getByLabel("Or with a token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
}

test("three sources of 0.9 MB outlive a reload, and cannot be read in the browser's files", async () => {
  const large = `${code}\n${`// ${"x".repeat(97)}\n`.repeat(9_000)}`;
  const names = ["large-1", "large-2", "large-3"];
  // kubectl keeps what it applies in an annotation, which has no room for it.
  for (const name of names) await platform.k("create -f -", functionManifest(name, large));
  const { page, complaints } = await user.open("/functions");
  for (const name of names) {
    await user.goTo(page, `/functions/default/${name}`);
    await type(page, name, `// typed in ${name}\n`);
    await page.getByText("They stay in this browser.").waitFor();
  }
  await untilStored(page);
  await page.reload();
  for (const name of names) {
    await user.goTo(page, `/functions/default/${name}`);
    await expect.poll(() => editorOf(page, name).textContent()).toContain(`// typed in ${name}`);
    await untilStored(page);
  }
  const all = await storedText(page);
  expect(all.filter((each) => each.length > 900_000).length).toBe(3);
  expect(all.join("")).not.toMatch(/typed in|xxxxxxxx/);
  expect(complaints).toEqual([]);
});

test("what is typed in the last moment before a reload is there after it", async () => {
  await apply("moment");
  const { page } = await user.open("/functions/default/moment");
  for (const text of ["// one\n", "// two\n", "// three\n"]) {
    await type(page, "moment", text);
    await page.reload();
    await expect.poll(() => editorOf(page, "moment").textContent()).toContain(text.trim());
  }
  await untilStored(page);
  await page.getByRole("button", { name: "Discard" }).click();
  await page.reload();
  await editorOf(page, "moment").waitFor();
  expect(await page.getByText("Changes not applied.").count()).toBe(0);
});

describe("a draft of another tab", () => {
  test("is offered and not overwritten, and each tab keeps its own", async () => {
    await apply("tabs");
    const { page } = await user.open("/functions/default/tabs");
    await type(page, "tabs", "// first\n");
    await untilStored(page);
    const second = await secondTab(page, "/functions/default/tabs");
    await second.getByText("Another tab has changes of tabs").waitFor();
    await second.getByText("in a tab that is still open").waitFor();
    expect(await second.getByRole("button", { name: "Discard" }).count()).toBe(0);
    await type(second, "tabs", "// second\n");
    await untilStored(second);
    await page.getByText("Another tab has changes of tabs").waitFor();
    for (const [tab, text, other] of [
      [page, "// first", "// second"],
      [second, "// second", "// first"],
    ] as const) {
      await tab.reload();
      await expect.poll(() => editorOf(tab, "tabs").textContent()).toContain(text);
      expect(await editorOf(tab, "tabs").textContent()).not.toContain(other);
    }
    await user.shot(page, "draft-of-another-tab");
    await second.close();
    await page.reload();
    await page.getByText("in a tab that is closed").waitFor();
    await page.getByRole("button", { name: "Use them instead of those here" }).click();
    await expect.poll(() => editorOf(page, "tabs").textContent()).toContain("// second");
    await page.getByRole("button", { name: "Undo" }).click();
    await expect.poll(() => editorOf(page, "tabs").textContent()).toContain("// first");
    await page.locator("section.problem").getByRole("button", { name: "Discard" }).click();
    await expect.poll(() => page.getByText("Another tab has changes").count()).toBe(0);
    await page.reload();
    await expect.poll(() => editorOf(page, "tabs").textContent()).toContain("// first");
    expect(await page.getByText("Another tab has changes").count()).toBe(0);
  });

  test("is not shared with a tab that the browser has duplicated", async () => {
    await apply("twin");
    const { page } = await user.open("/functions/default/twin");
    await type(page, "twin", "// original\n");
    await untilStored(page);
    const copy = await page.evaluate(() =>
      Object.fromEntries(Object.entries(sessionStorage) as [string, string][]),
    );
    const twin = await page.context().newPage();
    await twin.addInitScript((values) => {
      for (const [key, value] of Object.entries(values)) sessionStorage.setItem(key, value);
    }, copy);
    await twin.goto(`${user.origin}/functions/default/twin`);
    await twin.getByText("Another tab has changes of twin").waitFor();
    await type(twin, "twin", "// copy\n");
    await untilStored(twin);
    await page.reload();
    await expect.poll(() => editorOf(page, "twin").textContent()).toContain("// original");
    expect(await editorOf(page, "twin").textContent()).not.toContain("// copy");
  });

  test("for a new Function is offered in Create", async () => {
    const { page } = await user.open("/functions");
    const first = await secondTab(page, "/new");
    await first.getByLabel("Name", { exact: true }).fill("begun");
    // Leaving the page stores it.
    await first.waitForFunction(async () => {
      const opening = indexedDB.open("spry");
      await new Promise((resolve) => (opening.onsuccess = resolve));
      const all = opening.result.transaction("typed").objectStore("typed").getAllKeys();
      await new Promise((resolve) => (all.onsuccess = resolve));
      opening.result.close();
      return all.result.some((id) => (id as string[])[3] === "new");
    });
    await first.close();
    const again = await secondTab(page, "/new");
    await again.getByText("Another tab has begun a Function").waitFor();
    await again.getByRole("button", { name: "Continue with it here" }).click();
    await expect.poll(() => again.getByLabel("Name", { exact: true }).inputValue()).toContain("b");
    await expect.poll(() => again.getByText("Another tab has begun").count()).toBe(0);
  });
});

describe("another user of the same browser", () => {
  test("gets nothing of it, and the first one finds it again", async () => {
    const token = await tokenOf("second");
    await apply("whose");
    const { page } = await user.open("/functions/default/whose");
    await type(page, "whose", "// of the owner\n");
    await untilStored(page);
    const context = page.context();
    await page.close();
    const other = await context.newPage();
    await other.goto(`${user.origin}/functions/default/whose`);
    await logInWith(other, token);
    await editorOf(other, "whose").waitFor();
    expect(await other.getByText("Another tab has changes").count()).toBe(0);
    await type(other, "whose", "// of the second\n");
    await untilStored(other);
    await other.getByRole("button", { name: "Log out" }).click();
    await other.getByRole("dialog").getByRole("button", { name: "Log out" }).click();
    await other.getByRole("heading", { name: "Log in to Spry" }).waitFor();
    expect((await storedText(other)).length).toBe(1);
    await other.goto(await user.loginLink());
    await other.getByRole("navigation", { name: "Sections" }).waitFor();
    await user.goTo(other, "/functions/default/whose");
    await other.getByRole("button", { name: "Continue with them here" }).click();
    await expect.poll(() => editorOf(other, "whose").textContent()).toContain("// of the owner");
    expect(await editorOf(other, "whose").textContent()).not.toContain("// of the second");
  });

  test("who logs in after a login has ended begins with an empty page", async () => {
    const token = await tokenOf("third");
    await apply("handed");
    const { page } = await user.open("/functions/default/handed");
    await type(page, "handed", "// of the first\n");
    await page.route("**/k8s/**", (route) => route.fulfill({ status: 401, json: {} }));
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("dialog", { name: "Log in again" }).waitFor();
    await page.unroute("**/k8s/**");
    await logInWith(page, token);
    await page.waitForEvent("load");
    await editorOf(page, "handed").waitFor();
    expect(await page.getByText("Changes not applied.").count()).toBe(0);
    const kept = await page.evaluate(() => JSON.stringify(sessionStorage));
    expect(kept).not.toContain("of the first");
  });
});

test("what a full disk does not take is said, and only then closing the tab asks", async () => {
  await apply("disk");
  const { page } = await user.open("/functions/default/disk");
  const devtools = await page.context().newCDPSession(page);
  const limit = (quotaSize?: number) =>
    devtools.send("Storage.overrideQuotaForOrigin", {
      origin: user.origin,
      ...(quotaSize !== undefined && { quotaSize }),
    });
  await limit(1);
  await type(page, "disk", `// ${"typed ".repeat(20_000)}\n`);
  await page.getByText("This browser has no room to store them").waitFor();
  const asked = page.waitForEvent("dialog");
  await page.evaluate(() => setTimeout(() => location.reload()));
  const dialog = await asked;
  expect(dialog.type()).toBe("beforeunload");
  await dialog.dismiss();
  await limit();
  await type(page, "disk", "// more\n");
  await page.getByText("They stay in this browser.").waitFor();
  await untilStored(page);
  // Nothing asks any more: an unexpected question would be answered with staying.
  page.on("dialog", (each) => void each.dismiss());
  await page.reload();
  await expect.poll(() => editorOf(page, "disk").textContent()).toContain("// more");
});

test("it is removed after seven days", async () => {
  const token = await tokenOf("weekly");
  await apply("old");
  const { page } = await user.tab();
  await page.goto(`${user.origin}/functions/default/old`);
  await logInWith(page, token);
  await type(page, "old", "// typed\n");
  await untilStored(page);
  const dayMs = 86_400_000;
  await page.clock.setFixedTime(Date.now() + 6.9 * dayMs);
  await page.reload();
  await expect.poll(() => editorOf(page, "old").textContent()).toContain("// typed");
  await page.clock.setFixedTime(Date.now() + 7.1 * dayMs);
  await page.reload();
  await editorOf(page, "old").waitFor();
  expect(await editorOf(page, "old").textContent()).not.toContain("// typed");
  expect(await storedText(page)).toEqual([]);
});
