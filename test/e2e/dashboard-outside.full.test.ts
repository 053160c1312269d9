/** The page does not die: whatever is typed, stored, or answered by a proxy, it says what is wrong and leads on. */
import { array, jsonValue, nat, sample, tuple } from "fast-check";
import { type Page } from "playwright-core";
import { expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;

const code = 'module.exports = { main: () => "ok" };';
const apply = (name: string) => platform.k("apply -f -", functionManifest(name, code));

async function type(page: Page, label: string, text: string): Promise<void> {
  await page.getByLabel(label, { exact: true }).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}
const tabs = ["code", "try", "logs", "metrics", "settings", "history", "builds", "events", "yaml"];

/** All tabs of a Function's view can be opened. */
async function visitTabs(page: Page, name: string): Promise<void> {
  for (const tab of tabs) {
    await page.locator(`nav.tabs a[href$="/${name}/${tab}"]`).click();
    await expect.poll(() => page.locator('nav.tabs a[aria-current="page"]').count()).toBe(1);
  }
  expect(await page.getByText("has failed").count()).toBe(0);
}

/** Chromium itself styles what replaces a selection of coloured text; the page's policy refuses that, without harm. */
const withoutTyping = (complaints: string[]) =>
  complaints.filter((each) => !each.startsWith("Applying inline style"));

const head =
  "apiVersion: serverless.kyma-project.io/v1alpha2\nkind: Function\nmetadata:\n  name: odd\n";
const source = "  source:\n    inline:\n      source: x\n";
const oddSpecs = [
  "  source:\n",
  "  source:\n    inline: text\n",
  "  source: 5\n",
  `${source}  env: map\n`,
  `${source}  env: [null]\n`,
  `${source}  schedules: map\n`,
  `${source}  labels: [1]\n`,
  `${source}  traffic: [null]\n`,
  "  source: &a\n    inline: *a\n",
];

test("YAML of any form leaves the page as it is, and a tab away is the form", async () => {
  await apply("odd");
  const { page, complaints } = await user.open("/functions/default/odd/yaml");
  for (const spec of oddSpecs) {
    await type(page, "YAML of odd", `${head}spec:\n${spec}`);
    await page.getByText("Changes not applied.").waitFor();
    expect(await page.getByRole("button", { name: "Apply" }).isDisabled()).toBe(true);
    await page.locator('nav.tabs a[href$="/settings"]').click();
    await page.getByText("Size and scale").waitFor();
    await page.locator('nav.tabs a[href$="/code"]').click();
    await page.getByLabel("Source of odd", { exact: true }).waitFor();
    await page.locator('nav.tabs a[href$="/yaml"]').click();
  }
  await page.reload();
  await visitTabs(page, "odd");
  await page.getByRole("button", { name: "Discard" }).click();
  expect(withoutTyping(complaints)).toEqual([]);
});

test("YAML of any form in Create leaves the form, also after a reload", async () => {
  const { page, complaints } = await user.open("/new");
  for (const spec of oddSpecs) {
    await page.getByRole("button", { name: "YAML", exact: true }).click();
    await type(page, "YAML", `${head}spec:\n${spec}`);
    await page.getByRole("button", { name: "Form", exact: true }).click();
    await page.getByLabel("Name", { exact: true }).waitFor();
  }
  await page.reload();
  await page.getByRole("button", { name: "Create", exact: true }).waitFor();
  expect(withoutTyping(complaints)).toEqual([]);
});

test("any path can be typed into the console", async () => {
  await apply("odd");
  const { page, complaints } = await user.open("/functions/default/odd/try");
  for (const path of ["//", "//[", "http://[", "", "?", "\\", "/%"]) {
    await page.getByLabel("Path and query").fill(path);
    await page.reload();
    expect(await page.getByLabel("Path and query").inputValue()).toBe(path);
    await page.getByRole("button", { name: "Send" }).waitFor();
  }
  expect(complaints).toEqual([]);
});

test("an address of any form shows a view", async () => {
  const { page, complaints } = await user.open("/functions");
  for (const path of ["//", "//x", "/%", "/functions/%/%", "/functions/a/b/c/d", "/new?ns=%"]) {
    await page.goto(user.origin + path);
    await page.getByRole("navigation", { name: "Sections" }).waitFor();
  }
  expect(complaints).toEqual([]);
});

const odd = [null, 5, "text", [], {}, [null], { a: null }, { request: 5, past: {} }];

test("stored values of any form are read as far as they fit", async () => {
  await apply("odd");
  const { page, complaints } = await user.open("/functions/default/odd/try");
  const names = ["calls", "draft", "traces", "settings", "typed.socket "].map(
    (name) => `spry.${name}${name.endsWith(" ") ? "" : "."}default/odd`,
  );
  for (const value of odd) {
    await page.evaluate(
      ([names, text]) => {
        for (const name of [...names, "spry.new", "spry.typed.expose", "spry.typed.subscribe"])
          sessionStorage.setItem(name, text);
        localStorage.setItem("spry.theme", text);
      },
      [names, JSON.stringify(value)] as const,
    );
    await page.reload();
    await visitTabs(page, "odd");
    await user.goTo(page, "/new");
    await page.getByLabel("Name", { exact: true }).waitFor();
    await user.goTo(page, "/functions/default/odd/try");
  }
  expect(complaints).toEqual([]);
});

test("a browser that stores nothing is worked with all the same", async () => {
  await apply("odd");
  const { page, complaints } = await user.open("/functions/default/odd/try");
  await page.evaluate(() => {
    Storage.prototype.setItem = () => {
      throw new DOMException("full", "QuotaExceededError");
    };
  });
  await page.getByLabel("Path and query").fill("/x");
  await page.getByRole("button", { name: "Send" }).click();
  await expect.poll(() => page.getByTestId("answer").textContent()).toContain("ok");
  await user.goTo(page, "/functions/default/odd/code");
  await type(page, "Source of odd", "changed");
  await page.getByText("Changes not applied.").waitFor();
  await page.getByRole("button", { name: "Dark theme" }).click();
  expect(complaints).toEqual([]);
});

test("a proxy's own page in place of what the dashboard says is a message, not a white page", async () => {
  const tab = await user.tab();
  await tab.page.route("**/info", (route) =>
    route.fulfill({ contentType: "text/html", body: "<h1>Sign in</h1>" }),
  );
  await tab.page.goto(await user.loginLink());
  await tab.page.getByRole("navigation", { name: "Sections" }).waitFor();
  expect(tab.complaints).toEqual([]);
});

test("a part of the page that does not arrive is said", async () => {
  const { page } = await user.open("/functions");
  await page.route("**/assets/app-*.js", (route) => route.abort());
  await page.goto(`${user.origin}/functions`);
  await page.getByText("a part of it has not arrived").waitFor();
  await page.unroute("**/assets/app-*.js");
  await page.getByRole("link", { name: "load it again" }).click();
  await page.getByRole("navigation", { name: "Sections" }).waitFor();
  // What is loaded later: the YAML tab's code, the editor's, and the templates.
  await apply("odd");
  await page.goto(`${user.origin}/functions/default/odd/try`);
  await page.getByRole("button", { name: "Send" }).waitFor();
  await page.route("**/assets/*.js", (route) => route.abort());
  await page.locator('nav.tabs a[href$="/yaml"]').click();
  await page.getByText("This part of the page could not be loaded").waitFor();
  await page.locator('nav.tabs a[href$="/code"]').click();
  await page.getByText("The editor could not be loaded").first().waitFor();
  await user.goTo(page, "/new");
  await page.getByText("This part of the page could not be loaded").waitFor();
});

/** One of each kind; what an API server with another schema, or a proxy, could answer is made from it. */
const examples: Record<string, object> = {
  functions: {
    metadata: { name: "odd", namespace: "default", uid: "u", resourceVersion: "1" },
    spec: { source: { inline: { source: "x" } }, env: [{ name: "A", value: "b" }] },
    status: { conditions: [{ type: "Running", status: "False", reason: "r", message: "m" }] },
  },
  pods: {
    metadata: {
      name: "p",
      namespace: "default",
      labels: {
        "serverless.kyma-project.io/function-name": "odd",
        "serverless.kyma-project.io/resource": "deployment",
      },
    },
    spec: { containers: [{ name: "c", env: [] }], nodeName: "n" },
    status: { phase: "Running", containerStatuses: [{ name: "c", restartCount: 0, state: {} }] },
  },
  jobs: { metadata: { name: "j", namespace: "default", labels: {} }, status: { conditions: [] } },
  controllerrevisions: {
    metadata: { name: "r", ownerReferences: [{ uid: "u", controller: true }] },
    revision: 1,
    data: { spec: { source: {} }, image: "i", buildKey: "k", time: "t" },
  },
  events: { metadata: { name: "e" }, reason: "r", message: "m", lastTimestamp: "t" },
  nodes: {
    metadata: { name: "n" },
    status: { capacity: { memory: "1Gi" }, conditions: [{ type: "Ready", status: "True" }] },
  },
  apirules: {
    metadata: { name: "a", namespace: "default" },
    spec: { hosts: ["h"], service: { name: "s" }, rules: [{ path: "/*" }] },
  },
  subscriptions: {
    metadata: { name: "s", namespace: "default" },
    spec: { sink: "http://odd.default.svc", types: ["a"] },
    status: { conditions: [{ type: "Ready", status: "False" }] },
  },
  serverlesses: { metadata: { name: "d", namespace: "kyma-system" }, spec: {}, status: {} },
  namespaces: { metadata: { name: "default" } },
};

/** The object with some parts replaced by anything; `metadata.name` stays, so that it can be recognised. */
const damaged = (value: object) =>
  array(tuple(nat(), jsonValue({ maxDepth: 1 })), { minLength: 1, maxLength: 3 }).map((hits) => {
    const result = structuredClone(value) as Record<string, unknown>;
    for (const [nth, put] of hits) {
      const places: [Record<string, unknown>, string][] = [];
      const walk = (each: unknown) => {
        if (typeof each !== "object" || each === null) return;
        for (const [key, child] of Object.entries(each)) {
          if (key !== "metadata" && key !== "name" && key !== "namespace")
            places.push([each as Record<string, unknown>, key]);
          walk(child);
        }
      };
      walk(result);
      const place = places[nth % Math.max(places.length, 1)];
      if (place) place[0][place[1]] = put;
    }
    return result;
  });

test("generated objects are shown by every view as far as they fit", async () => {
  const { page, complaints } = await user.open("/functions");
  let round = 0;
  await page.route(/\/k8s\/(?:api|apis)\//, async (route) => {
    const { pathname } = new URL(route.request().url());
    const plural = pathname.split("/").at(-1) ?? "";
    const example = examples[plural];
    if (!example || route.request().method() !== "GET") return route.fallback();
    const [one] = sample(damaged(example), { seed: round, numRuns: 1 });
    return route.fulfill({ json: { metadata: { resourceVersion: "1" }, items: [one] } });
  });
  const views = [
    ...tabs.map((tab) => `/functions/default/odd/${tab}`),
    ...["functions", "apirules", "events", "calls", "builds", "registry", "nodes", "settings"].map(
      (section) => `/${section}`,
    ),
    "/new",
  ];
  for (round = 0; round < 4; round++) {
    for (const view of views) {
      await page.goto(user.origin + view);
      await page.getByRole("navigation", { name: "Sections" }).waitFor();
      await page.waitForLoadState("networkidle");
      expect(await page.getByText("has failed").count(), `${view}, seed ${round}`).toBe(0);
    }
  }
  expect(complaints).toEqual([]);
});

test("a view that fails all the same says so and leads on", async () => {
  await apply("odd");
  const { page } = await user.open("/functions");
  await page.evaluate(() => {
    // What no check of the page could have foreseen.
    Reflect.set(Array.prototype, "findLast", () => {
      throw new Error("unforeseen");
    });
  });
  await user.goTo(page, "/functions/default/odd/metrics");
  await page.getByText("The tab Metrics has failed").waitFor();
  await page.getByText("unforeseen").waitFor();
  await user.shot(page, "failed-tab");
  await page.locator('nav.tabs a[href$="/settings"]').click();
  await page.getByText("Size and scale").waitFor();
});
