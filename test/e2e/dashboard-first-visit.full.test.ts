/** A first visit: what is on the screen, and nothing else, leads to a Function of one's own that answers. */
import { type Page } from "playwright-core";
import { expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;
/** What a person reads and considers is not in it. */
const limitMs = 180_000;

/** Of a ServiceAccount with one of the roles that every cluster has. */
async function tokenOf(account: string): Promise<string> {
  const role = `--clusterrole=${account}`;
  await platform.k(`create serviceaccount ${account}`);
  await platform.k(`create rolebinding ${account} ${role} --serviceaccount=default:${account}`);
  return (await platform.k(`create token ${account}`)).trim();
}

async function logIn(page: Page, token: string): Promise<void> {
  await page.goto(user.origin);
  await page.getByLabel("Or with a token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  // These people may see one namespace, and have been told its name.
  await page.getByText("choose the one that you work in").waitFor();
  await page.getByLabel("Namespace").fill("default");
  await page.keyboard.press("Enter");
}

/** By visible controls alone, from the list of Functions to an answer. */
async function createAndCall(page: Page, name: string): Promise<void> {
  await page
    .getByRole("link", { name: /Create/ })
    .first()
    .click();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill(name);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByRole("button", { name: "Try it" }).click();
  await page.getByRole("status").filter({ hasText: "Running" }).waitFor();
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("region", { name: "Response" }).getByText("Hello, world!").waitFor();
}

test("as administrator", async () => {
  const { page, complaints } = await user.tab();
  const begin = performance.now();
  await page.goto(await user.loginLink());
  await createAndCall(page, "first");
  const seconds = Math.round((performance.now() - begin) / 1000);
  console.log(`a Function of one's own answers after ${seconds} s`);
  expect(performance.now() - begin).toBeLessThan(limitMs);
  expect(complaints).toEqual([]);
});

test("as editor of a namespace", async () => {
  const { page, complaints } = await user.tab();
  await logIn(page, await tokenOf("edit"));
  await createAndCall(page, "edited");
  expect(complaints).toEqual([]);
});

test("as viewer: Functions are found and read, and none is offered to be created", async () => {
  await platform.k("apply -f -", functionManifest("shown", "module.exports = { main: () => 1 };"));
  const { page, complaints } = await user.tab();
  await logIn(page, await tokenOf("view"));
  await page.getByRole("link", { name: /^shown/ }).waitFor();
  await expect.poll(() => page.getByRole("link", { name: /Create/ }).count()).toBe(0);
  await page.getByRole("link", { name: /^shown/ }).click();
  await page.getByRole("textbox", { name: "Source of shown" }).waitFor();
  expect(complaints).toEqual([]);
});
