/** What is around a Function is on its page: URLs, events, schedules, objects that it reads, versions; and it is changed where it is shown. */
import { expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;

const code = 'module.exports = { main: () => "ok" };';
const apply = (name: string, spec: Record<string, unknown> = {}) =>
  platform.k("apply -f -", functionManifest(name, code, spec));
const running = (name: string) =>
  platform.k(`wait --for=condition=Running function/${name} --timeout=60s`);
const expose = (name: string, host: string) =>
  platform.k(
    "apply -f -",
    JSON.stringify({
      apiVersion: "gateway.kyma-project.io/v2",
      kind: "APIRule",
      metadata: { name, namespace: "default" },
      spec: {
        hosts: [host],
        gateway: "kyma-system/kyma-gateway",
        service: { name, namespace: "default", port: 80 },
        rules: [{ path: "/*", methods: ["GET"], noAuth: true }],
      },
    }),
  );
const subscribe = (name: string, type: string) =>
  platform.k(
    "apply -f -",
    JSON.stringify({
      apiVersion: "eventing.kyma-project.io/v1alpha2",
      kind: "Subscription",
      metadata: { name: `${name}-events`, namespace: "default" },
      spec: {
        sink: `http://${name}.default.svc.cluster.local`,
        source: "shop",
        typeMatching: "exact",
        types: [type],
      },
    }),
  );

test("the page of a Function has its URLs, what calls it, what it reads, and its last versions", async () => {
  await platform.k("create secret generic login --from-literal=password=x");
  await platform.k("create configmap texts --from-literal=title=x");
  await apply("around", {
    env: [
      { name: "A", valueFrom: { secretKeyRef: { name: "login", key: "password" } } },
      { name: "B", valueFrom: { configMapKeyRef: { name: "texts", key: "title" } } },
    ],
    schedules: [
      { name: "nightly", cron: "0 3 * * *" },
      { name: "paused", cron: "0 4 * * *", suspend: true },
    ],
  });
  await running("around");
  await expose("around", "around-shop");
  await subscribe("around", "order.created.v1");
  const { page, complaints } = await user.open("/functions/default/around");
  const part = (title: string) =>
    page.locator(".related > div").filter({ has: page.getByText(title, { exact: true }) });
  await part("Inside the cluster").getByText("http://around.default.svc.cluster.local").waitFor();
  const port = new URL(platform.endpoints.gatewayTls).port;
  const link = part("Exposed at").getByRole("link");
  await expect
    .poll(() => link.getAttribute("href"))
    .toMatch(new RegExp(`^https://around-shop\\.[\\w.]+:${port}/$`));
  await part("Gets events").getByText("order.created.v1").waitFor();
  await part("Is called")
    .getByText(/^in \d+[hms]$/)
    .waitFor();
  await part("Is called").getByText("suspended").waitFor();
  await part("Reads").getByText("login").waitFor();
  await part("Reads").getByText("texts").waitFor();
  await part("Deployed").getByText("version 1").waitFor();
  await user.shot(page, "related");
  // It follows what happens.
  await platform.k("delete apirule around");
  await expect.poll(() => part("Exposed at").count()).toBe(0);
  expect(complaints).toEqual([]);
});

test("an APIRule leads to its URL", async () => {
  await apply("linked");
  await expose("linked", "linked.example.com");
  const { page } = await user.open("/apirules");
  const row = page.getByRole("row").filter({ hasText: "linked" });
  const { port } = new URL(platform.endpoints.gatewayTls);
  await row.getByRole("link", { name: `https://linked.example.com:${port}/` }).waitFor();
});

test("a Subscription is edited, and what another user has changed meanwhile is not overwritten", async () => {
  await apply("edited");
  await subscribe("edited", "order.created.v1");
  const { page, complaints } = await user.open("/events");
  const row = page.getByRole("row").filter({ hasText: "edited-events" });
  const types = () => platform.k("get subscription edited-events -o jsonpath={.spec.types}");
  await row.getByRole("button", { name: "Edit Subscription edited-events" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Types of events").fill("order.created.v1, order.paid.v1");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await row.getByText("order.created.v1, order.paid.v1").waitFor();
  expect(JSON.parse(await types())).toEqual(["order.created.v1", "order.paid.v1"]);
  await row.getByRole("button", { name: "Edit Subscription edited-events" }).click();
  await dialog.getByLabel("Types of events").fill("order.mine.v1");
  await subscribe("edited", "order.theirs.v1");
  await row.getByText("order.theirs.v1").waitFor();
  await dialog.getByRole("button", { name: "Apply" }).click();
  await dialog.getByText("another user has changed it meanwhile").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  expect(JSON.parse(await types())).toEqual(["order.theirs.v1"]);
  await row.getByRole("button", { name: "Edit Subscription edited-events" }).click();
  expect(await dialog.getByLabel("Types of events").inputValue()).toBe("order.theirs.v1");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await row.getByRole("button", { name: "Delete Subscription edited-events" }).click();
  await expect.poll(() => platform.k("get subscriptions -o name")).not.toContain("edited-events");
  expect(complaints).toEqual([]);
});

test("a schedule has its next and its last run", async () => {
  await apply("timed", { schedules: [{ name: "clean", cron: "0 3 * * *" }] });
  await running("timed");
  const { page, complaints } = await user.open("/calls");
  const row = page.getByRole("row").filter({ hasText: "clean" }).first();
  await row.getByText(/^in \d+[hms]$/).waitFor();
  await row.getByText("none kept").waitFor();
  await row.getByRole("button", { name: "Run now" }).click();
  await row.getByText(/^succeeded \d+s ago$/).waitFor();
  await user.shot(page, "schedules");
  expect(complaints).toEqual([]);
});

test("dead letters have their ids, and all are discarded after a second click", async () => {
  await platform.k(
    "apply -f -",
    functionManifest("failing", "module.exports = { main() { throw new Error('no'); } };"),
  );
  await running("failing");
  await subscribe("failing", "order.lost.v1");
  await platform.k(
    `patch subscription failing-events --type=merge -p {"spec":{"delivery":{"maxAttempts":1}}}`,
  );
  await platform
    .k("wait --for=condition=Ready subscription/failing-events --timeout=60s")
    .catch(() => "");
  const { page } = await user.open("/events");
  const row = page.getByRole("row").filter({ hasText: "failing-events" });
  await row.getByText("ready", { exact: true }).waitFor();
  for (const id of ["L-1", "L-2"]) {
    const { status } = await fetch(`${platform.endpoints.publisher}/publish`, {
      method: "POST",
      headers: { "content-type": "application/cloudevents+json" },
      body: JSON.stringify({
        specversion: "1.0",
        id,
        source: "shop",
        type: "order.lost.v1",
        data: {},
      }),
    });
    expect(status).toBe(204);
  }
  await row.getByRole("button", { name: "2 dead letters" }).click();
  const dialog = page.getByRole("dialog");
  for (const id of ["L-1", "L-2"]) await dialog.getByText(id, { exact: true }).waitFor();
  await dialog.getByRole("button", { name: "Discard all" }).click();
  await dialog.getByRole("button", { name: "Discard all of them for good" }).click();
  await page.getByText("2 events are discarded.").waitFor();
  await expect.poll(() => row.getByRole("button", { name: /dead letter/ }).count()).toBe(0);
});
