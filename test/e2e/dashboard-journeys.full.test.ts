/** What users do in the dashboard: create, break, repair, see, return, share, expose, delete; as several users. */
import { type Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;

const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;
const apply = (name: string, source: string, spec: Record<string, unknown> = {}) =>
  platform.k("apply -f -", functionManifest(name, source, spec));
const running = (name: string) =>
  platform.k(`wait --for=condition=Running function/${name} --timeout=60s`);
const stateOf = (page: Page) => page.getByTestId("state").textContent();

/** Replaces all of an editor's text, as its user does. */
async function type(page: Page, label: string, text: string): Promise<void> {
  await page.getByLabel(label, { exact: true }).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

test("a Function of one's own, from a template to its answer", async () => {
  const { page, complaints } = await user.open("/new");
  await page.getByRole("radio", { name: /HTTP, JavaScript/ }).click();
  // Without a name, the field is shown and focused.
  await page.getByRole("button", { name: "Create", exact: true }).click();
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-invalid"));
  await expect.poll(focused).toBe("true");
  await user.shot(page, "first-name");
  await page.getByRole("textbox", { name: "Name" }).fill("Bad Name");
  await page.getByText("use at most 63 small letters").waitFor();
  await page.getByRole("textbox", { name: "Name" }).fill("greeter");
  // A reload loses nothing of it.
  await page.reload();
  await expect.poll(() => page.getByRole("textbox", { name: "Name" }).inputValue()).toBe("greeter");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.waitForURL("**/functions/default/greeter");
  await user.shot(page, "first-created");
  await expect.poll(() => stateOf(page)).toBe("Running");
  await page.getByRole("link", { name: "Try it" }).click();
  await page.getByLabel("Path and query").fill("/?name=you");
  await page.getByRole("button", { name: "Send" }).click();
  await expect.poll(() => page.getByTestId("answer").textContent()).toContain("Hello, you!");
  await user.shot(page, "first-answer");
  expect(complaints).toEqual([]);
});

test("a broken change says where and why, the old version answers, and a repair runs", async () => {
  await apply("fragile", answering("whole"));
  await running("fragile");
  const { page, complaints } = await user.open("/functions/default/fragile");
  await type(page, "Source of fragile", "module.exports = {\n  main() {\n    return (;\n  },\n};");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("button", { name: "Apply all the same" }).click();
  await page
    .getByRole("heading", { name: /The new version does not run; version 1 still serves/ })
    .waitFor();
  await page.getByText("Go to line").waitFor();
  expect((await platform.call("fragile.default")).body).toBe("whole");
  await user.shot(page, "broken");
  await type(page, "Source of fragile", answering("repaired"));
  await page.getByRole("button", { name: "Apply" }).click();
  await expect.poll(() => stateOf(page)).toBe("Running");
  await platform.callUntil("fragile.default", ({ body }) => body === "repaired");
  expect(complaints).toEqual([]);
});

test("history leads back to a version, and shares split the requests", async () => {
  for (const text of ["one", "two"]) {
    await apply("versions", answering(text));
    await platform.callUntil("versions.default", ({ body }) => body === text);
    await running("versions");
  }
  const { page, complaints } = await user.open("/functions/default/versions/history");
  const first = page.getByRole("row").filter({ has: page.getByText("1", { exact: true }) });
  await first.getByRole("button", { name: "Roll back" }).click();
  await platform.callUntil("versions.default", ({ body }) => body === "one");
  await page
    .getByRole("row")
    .filter({ has: page.getByText("3", { exact: true }) })
    .getByText("serves 100 %")
    .waitFor();
  await page.getByLabel("Add a version to the traffic").selectOption("2");
  const share = page.getByLabel("Share of version 2");
  await share.focus();
  await share.fill("50");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("versions is applied.").waitFor();
  await platform.callUntil("versions.default", ({ body }) => body === "two");
  expect(await platform.k("get function versions -o jsonpath={.spec.traffic[*].percent}")).toBe(
    "50 50",
  );
  await user.shot(page, "history");
  expect(complaints).toEqual([]);
});

test("output of a Function appears as it is written, is filtered, and is never more than text", async () => {
  const evil = "<img src=x onerror=alert(1)>\\u001b[31mred\\u001b[0m\\u202e";
  await apply(
    "talker",
    `module.exports = { main(event) { console.log("${evil} " + event.extensions.request.query.id); console.error("Error: odd"); return "ok"; } };`,
  );
  await running("talker");
  const { page, complaints } = await user.open("/functions/default/talker/logs");
  await platform.call("talker.default", { path: "/?id=first" });
  const log = page.getByRole("log");
  await log.getByText("<img src=x onerror=alert(1)>red first").waitFor();
  await platform.call("talker.default", { path: "/?id=second" });
  await log.getByText("red second").waitFor();
  await page.getByLabel("Filter lines").fill("second");
  await expect.poll(() => log.textContent()).not.toContain("first");
  await page.getByLabel("Filter lines").fill("");
  await page.getByLabel("Level").selectOption("Errors");
  await expect.poll(() => log.textContent()).toContain("Error: odd");
  expect(await log.textContent()).not.toContain("second");
  expect(await page.locator("img[src=x]").count()).toBe(0);
  expect(complaints).toEqual([]);
});

describe("two users", () => {
  test("change different fields: both changes stay", async () => {
    await apply("both", answering("a"));
    await running("both");
    const { page } = await user.open("/functions/default/both");
    await type(page, "Source of both", answering("mine"));
    await platform.k(
      `patch function both --type=merge -p {"spec":{"env":[{"name":"THEIRS","value":"1"}]}}`,
    );
    await page.getByText("Another user has changed this Function").waitFor();
    await page.getByRole("button", { name: "Apply" }).click();
    await platform.callUntil("both.default", ({ body }) => body === "mine");
    expect(await platform.k("get function both -o jsonpath={.spec.env[0].name}")).toBe("THEIRS");
  });

  test("change the same field: nothing is overwritten unseen, and one chooses", async () => {
    await apply("clash", answering("a"));
    await running("clash");
    const { page, complaints } = await user.open("/functions/default/clash");
    await type(page, "Source of clash", answering("mine"));
    await apply("clash", answering("theirs"));
    await page.getByText("Another user has changed this Function").waitFor();
    await page.getByRole("button", { name: "Apply" }).click();
    const dialog = page.getByRole("dialog", { name: "Another user has changed the same fields" });
    await dialog.getByText("theirs").first().waitFor();
    expect(await platform.k("get function clash -o jsonpath={.spec.source.inline.source}")).toBe(
      answering("theirs"),
    );
    await user.shot(page, "clash");
    await dialog.getByRole("radio", { name: "mine" }).check();
    await dialog.getByRole("button", { name: "Apply" }).click();
    await platform.callUntil("clash.default", ({ body }) => body === "mine");
    expect(complaints).toEqual([]);
  });
});

describe("what is typed", () => {
  test("survives a reload, an end of the platform, and an end of the login", async () => {
    await apply("kept", answering("before"));
    await running("kept");
    const { page } = await user.open("/functions/default/kept");
    const source = page.getByLabel("Source of kept", { exact: true });
    await type(page, "Source of kept", answering("typed"));
    await page.reload();
    await expect.poll(() => source.textContent()).toContain("typed");
    // The login ends: the server no longer takes it.
    await page.evaluate(() => {
      const login = JSON.parse(sessionStorage.getItem("spry.login") ?? "{}") as { token: string };
      sessionStorage.setItem("spry.login", JSON.stringify({ ...login, token: `${login.token}x` }));
    });
    await page.reload();
    await page.getByText("Your login has expired").waitFor();
    await page.goto(await user.loginLink());
    await user.goTo(page, "/functions/default/kept");
    await expect.poll(() => source.textContent()).toContain("typed");
    await page.getByRole("button", { name: "Apply" }).click();
    await platform.callUntil("kept.default", ({ body }) => body === "typed");
  });

  test("in a dialogue survives Escape and a reload, until it is applied", async () => {
    const { page } = await user.open("/events");
    const subscribe = page.getByRole("button", { name: "Subscribe" }).first();
    await subscribe.click();
    await page.getByLabel("Types of events").fill("order.paid.v1");
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    await subscribe.click();
    expect(await page.getByLabel("Types of events").inputValue()).toBe("order.paid.v1");
    await page.reload();
    await subscribe.click();
    expect(await page.getByLabel("Types of events").inputValue()).toBe("order.paid.v1");
  });
});

test("a search that finds nothing says so, and leads back", async () => {
  await apply("findable", answering("findable"));
  const { page, complaints } = await user.open("/functions?q=nowhere-to-be-found");
  await page.getByText("No Function matches nowhere-to-be-found").waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  await page.getByRole("link", { name: /^findable/ }).waitFor();
  expect(await page.getByLabel("Search Functions").inputValue()).toBe("");
  expect(complaints).toEqual([]);
});

describe("rights", () => {
  test("a viewer sees, and is offered nothing else; what they try is refused", async () => {
    await apply("seen", answering("seen"));
    await running("seen");
    await platform.k("create serviceaccount viewer");
    await platform.k(
      "create rolebinding viewer --clusterrole=view --serviceaccount=default:viewer",
    );
    const token = (await platform.k("create token viewer")).trim();
    const { page, complaints } = await user.tab();
    await page.goto(`${user.origin}/functions?ns=default`);
    await page.getByLabel("Or with a token").fill("not.a.token");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByText("the cluster does not accept this token").waitFor();
    await page.getByLabel("Or with a token").fill(token);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("link", { name: /^seen/ }).click();
    await expect.poll(() => stateOf(page)).toBe("Running");
    await page.getByRole("link", { name: "Settings", exact: true }).last().click();
    await page.getByLabel("Runtime").waitFor();
    await expect.poll(() => page.getByLabel("Runtime").isDisabled()).toBe(true);
    expect(await page.getByRole("button", { name: /Delete this Function/ }).count()).toBe(0);
    const tried = await page.evaluate(async () => {
      const { token } = JSON.parse(sessionStorage.getItem("spry.login") ?? "{}") as {
        token: string;
      };
      const path =
        "/k8s/apis/serverless.kyma-project.io/v1alpha2/namespaces/default/functions/seen";
      const headers = { authorization: `Bearer ${token}` };
      return (await fetch(path, { method: "DELETE", headers })).status;
    });
    expect(tried).toBe(403);
    // Other namespaces are not theirs.
    await user.goTo(page, "/functions");
    await page.getByText("Functions cannot be listed").waitFor();
    expect(complaints).toEqual([]);
  });

  test("who sees all namespaces may create where they may, and is led there", async () => {
    await platform.k("create namespace workshop");
    await platform.k("create serviceaccount worker -n workshop");
    const account = "--serviceaccount=workshop:worker";
    await platform.k(`create clusterrolebinding worker --clusterrole=view ${account}`);
    await platform.k(
      "create clusterrole sees-namespaces --verb=get,list,watch --resource=namespaces",
    );
    await platform.k(
      `create clusterrolebinding worker-sees --clusterrole=sees-namespaces ${account}`,
    );
    await platform.k(`create rolebinding worker --clusterrole=edit ${account} -n workshop`);
    const { page, complaints } = await user.tab();
    await page.goto(`${user.origin}/functions`);
    const token = await platform.k("create token worker -n workshop");
    await page.getByLabel("Or with a token").fill(token.trim());
    await page.getByRole("button", { name: "Log in" }).click();
    const link = page.getByRole("link", { name: /Create/ }).first();
    await expect.poll(() => link.getAttribute("href")).toBe("/new?ns=workshop");
    expect(complaints).toEqual([]);
  });

  test("an editor changes and deletes Functions of the namespace, and is offered nothing of the platform", async () => {
    await apply("edited", answering("before"));
    await running("edited");
    await platform.k("create serviceaccount editor");
    await platform.k(
      "create rolebinding editor --clusterrole=edit --serviceaccount=default:editor",
    );
    const { page, complaints } = await user.tab();
    await page.goto(`${user.origin}/functions/default/edited`);
    await page.getByLabel("Or with a token").fill((await platform.k("create token editor")).trim());
    await page.getByRole("button", { name: "Log in" }).click();
    await type(page, "Source of edited", answering("by the editor"));
    await page.getByRole("button", { name: "Apply" }).click();
    // What was typed stays on the screen until the watch has brought it, and after that.
    const source = page.getByLabel("Source of edited", { exact: true });
    await page.getByText("edited is applied.").waitFor();
    expect(await source.textContent()).toContain("by the editor");
    await platform.callUntil("edited.default", ({ body }) => body === "by the editor");
    await page.getByText("Changes not applied.").waitFor({ state: "hidden" });
    expect(await source.textContent()).toContain("by the editor");
    await user.goTo(page, "/settings");
    await page.getByText("You may not see the platform’s settings").waitFor();
    expect(await page.getByRole("button", { name: "Change settings" }).count()).toBe(0);
    await user.goTo(page, "/nodes");
    await page.getByText("You may not see nodes").waitFor();
    await user.goTo(page, "/functions/default/edited/settings");
    await page.getByRole("button", { name: /Delete this Function/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await expect
      .poll(() => platform.k("get functions --field-selector metadata.name=edited -o name"))
      .toBe("");
    expect(complaints).toEqual([]);
  });
});

test("variables and labels are added, changed and removed in the form", async () => {
  await apply("formed", answering("formed"), { env: [{ name: "OLD", value: "1" }] });
  await running("formed");
  const { page, complaints } = await user.open("/functions/default/formed/settings");
  await page.getByRole("button", { name: "Variable", exact: true }).click();
  await page.getByLabel("Name of variable 2").fill("PASSWORD");
  await page.getByLabel("Where variable 2 is from").selectOption("Secret");
  await page.getByLabel("Secret of variable 2").fill("shop");
  await page.getByLabel("Key of variable 2").fill("password");
  await page.getByRole("button", { name: "Variable", exact: true }).click();
  await page.getByLabel("Name of variable 3").fill("NEW");
  await page.getByLabel("Value of variable 3").fill("3");
  await page.getByRole("button", { name: "Remove variable OLD" }).click();
  await page.getByRole("button", { name: "Label", exact: true }).click();
  await page.getByLabel("Name of label 1").fill("team");
  await page.getByLabel("Value of label 1").fill("shop");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("formed is applied.").waitFor();
  const of = (path: string) => platform.k(`get function formed -o jsonpath={${path}}`);
  expect(JSON.parse(await of(".spec.env"))).toEqual([
    { name: "PASSWORD", valueFrom: { secretKeyRef: { name: "shop", key: "password" } } },
    { name: "NEW", value: "3" },
  ]);
  expect(await of(".metadata.labels.team")).toBe("shop");
  expect(complaints).toEqual([]);
});

test("a deletion says what goes with it, and can be undone", async () => {
  await apply("brief", answering("brief"));
  await running("brief");
  const { page } = await user.open("/functions/default/brief/settings");
  await page.getByRole("button", { name: /Delete this Function/ }).click();
  const dialog = page.getByRole("dialog", { name: "Delete Function brief?" });
  await dialog.getByText("its history of 1 version").waitFor();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await expect.poll(() => platform.k("get functions -o name")).not.toContain("/brief");
  await page.getByRole("button", { name: "Undo" }).click();
  await platform.callUntil("brief.default", ({ body }) => body === "brief");
});

test("an APIRule exposes a Function", async () => {
  await apply("public", answering("public"));
  await running("public");
  const { page, complaints } = await user.open("/apirules");
  await page.getByRole("button", { name: "Expose a Function" }).first().click();
  await page.getByLabel("Function", { exact: true }).selectOption("default/public");
  await page.getByRole("button", { name: "Expose", exact: true }).click();
  await page
    .getByRole("row")
    .filter({ hasText: "public" })
    .getByText("Ready", { exact: true })
    .waitFor();
  expect(complaints).toEqual([]);
});

test("a Function subscribes to events, and what it could not handle is sent again", async () => {
  const handler = (whenEvent: string) =>
    `const seen = []; module.exports = { main(event) { if (event["ce-type"]) { ${whenEvent} } return seen.join(); } };`;
  await apply("orders", handler("throw new Error('not yet')"));
  await running("orders");
  const { page, complaints } = await user.open("/events");
  await page.getByRole("button", { name: "Subscribe" }).first().click();
  await page.getByLabel("Function", { exact: true }).selectOption("default/orders");
  await page.getByLabel("Types of events").fill("order.created.v1");
  await page.getByLabel("Source").fill("shop");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  const row = page.getByRole("row").filter({ hasText: "order.created.v1" });
  await row.getByText("ready", { exact: true }).waitFor();
  const subscription = (await platform.k("get subscriptions -o name")).trim();
  await platform.k(`patch ${subscription} --type=merge -p {"spec":{"delivery":{"maxAttempts":1}}}`);
  const { status } = await fetch(`${platform.endpoints.publisher}/publish`, {
    method: "POST",
    headers: { "content-type": "application/cloudevents+json" },
    body: JSON.stringify({
      specversion: "1.0",
      id: "A-1",
      source: "shop",
      type: "order.created.v1",
      data: {},
    }),
  });
  expect(status).toBe(204);
  await row.getByRole("button", { name: "1 dead letter" }).click();
  const dialog = page.getByRole("dialog", { name: /^Dead letters of/ });
  await dialog.getByText("Event", { exact: true }).click();
  await dialog.getByText('"id": "A-1"').waitFor();
  await user.shot(page, "dead-letters");
  await apply("orders", handler(`seen.push(event["ce-id"])`));
  await platform.callUntil("orders.default", ({ body, status }) => status === 200 && body === "");
  await running("orders");
  await dialog.getByRole("button", { name: "Redrive all" }).click();
  await platform.callUntil("orders.default", ({ body }) => body === "A-1");
  await expect.poll(() => row.getByRole("button", { name: /dead letter/ }).count()).toBe(0);
  expect(complaints).toEqual([]);
});
