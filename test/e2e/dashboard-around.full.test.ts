/** What is around Functions: images in the registry, builds that wait for a slot, traces. */
import { createServer, type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;

const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;
const apply = (name: string, source: string, spec: Record<string, unknown> = {}) =>
  platform.k("apply -f -", functionManifest(name, source, spec));
const running = (name: string) =>
  platform.k(`wait --for=condition=Running function/${name} --timeout=60s`);
const configure = (spec: object) =>
  platform.k(
    "apply -f -",
    JSON.stringify({
      apiVersion: "operator.kyma-project.io/v1alpha1",
      kind: "Serverless",
      metadata: { name: "default", namespace: "kyma-system" },
      spec,
    }),
  );

let collector: Server;
/** The bodies of what has been sent to the collector. */
const spans: Buffer[] = [];

beforeAll(async () => {
  collector = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      spans.push(Buffer.concat(chunks));
      response.end();
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, "0.0.0.0", resolve));
});
afterAll(() => {
  collector.closeAllConnections();
  collector.close();
});

test("the registry's images are shown, each with its size, its Function and why it is kept", async () => {
  await apply("kept", answering("one"));
  await running("kept");
  await apply("kept", answering("two"));
  await platform.callUntil("kept.default", ({ body }) => body === "two");
  const { page, complaints } = await user.open("/builds");
  await page.getByRole("link", { name: "Images in the registry" }).click();
  await page.waitForURL("**/registry");
  const own = page.getByRole("region", { name: "default/kept" });
  await own.getByText("version 1 in the history").waitFor();
  await own.getByText("version 2 in the history").waitFor();
  expect(await own.getByRole("row").last().textContent()).toMatch(/\d [KM]?i?B/);
  await page.getByRole("region", { name: "spry/nodejs24" }).getByText("in use").waitFor();
  await page.getByRole("meter").waitFor();
  await user.shot(page, "registry");
  await own.getByRole("link").click();
  await page.waitForURL("**/functions/default/kept/history");
  expect(complaints).toEqual([]);
});

test("Functions that wait for a slot are listed with their positions, and leave when it is free", async () => {
  await configure({ functionBuildMaxSimultaneousJobs: "1" });
  // A build that does not end before the test wants it to: it takes the only slot.
  const job = {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      name: "endless",
      labels: {
        "serverless.kyma-project.io/function-name": "endless",
        "serverless.kyma-project.io/managed-by": "function-controller",
      },
    },
    spec: {
      suspend: true,
      template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "x" }] } },
    },
  };
  await platform.k("apply -f -", JSON.stringify(job));
  const { page, complaints } = await user.open("/builds");
  const before = () =>
    platform.k(
      "get serverlesses -A -o jsonpath={.items[0].status.functionBuildMaxSimultaneousJobs}",
    );
  await expect.poll(before).toBe("1");
  for (const name of ["first", "second"]) {
    await apply(name, answering(name));
    await page.getByText(`default/${name}`).first().waitFor();
  }
  const queue = page.getByRole("region", { name: "Waiting for a slot" });
  await queue.getByText("One build runs at a time").waitFor();
  // The Job that has the slot is suspended: it waits, too.
  await page.getByText("0 running, 3 waiting, 0 failed").waitFor();
  const rows = queue.getByRole("row");
  await expect.poll(() => rows.count()).toBe(3);
  expect(await rows.nth(1).textContent()).toMatch(/^1default\/first/);
  expect(await rows.nth(2).textContent()).toMatch(/^2default\/second/);
  await user.shot(page, "queue");
  await platform.k("delete job endless");
  await queue.waitFor({ state: "hidden" });
  await running("second");
  expect(complaints).toEqual([]);
});

test("without a collector the page explains how to turn traces on; with one, each request has its trace", async () => {
  await configure({});
  await apply("traced", answering("traced"));
  await running("traced");
  const { page, complaints } = await user.open("/functions/default/traced/metrics");
  const panel = page.getByRole("region", { name: "Traces" });
  await panel.getByText("Requests are not traced").waitFor();
  await user.shot(page, "traces-off");
  const { port } = collector.address() as AddressInfo;
  // Containers have a loopback address of their own.
  const endpoint = `http://${platform.hostAddress}:${port}`;
  await configure({ tracing: { endpoint } });
  await panel.getByText(endpoint).waitFor();
  await running("traced");
  await page.getByRole("link", { name: "Try it" }).click();
  await page.getByRole("button", { name: "Send" }).click();
  const answer = page.getByTestId("answer");
  await answer.getByText("Find it in the logs").waitFor();
  const id = (await answer.getByRole("code").textContent()) ?? "";
  expect(id).toMatch(/^[\da-f]{32}$/);
  const hasSpan = () => spans.some((body) => body.includes(Buffer.from(id, "hex")));
  await expect.poll(hasSpan, { timeout: 30_000 }).toBe(true);
  await user.shot(page, "trace-answer");
  await page.getByRole("link", { name: "Metrics" }).click();
  await panel.getByText(id).waitFor();
  await user.shot(page, "traces-on");
  expect(complaints).toEqual([]);
});
