/** The dashboard of a cluster: the installation's Deployment, which has no rights of its own, and `spry dashboard` with a kubeconfig. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { type IncomingMessage, request } from "node:http";
import path from "node:path";
import { type Function, functions, subscriptions } from "@spry/function";
import { type Deployment, resources } from "@spry/kube";
import { patience } from "@spry/test-kit";
import { type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launchBrowser, openTab, screenshot, whyNoBrowser } from "../support/browser.ts";
import { InstalledCluster, whyNoInstallation } from "../support/installed-cluster.ts";
import { pushNatsImage } from "../support/nats-image.ts";
import { cleanEnvironment, functionManifest, root, run } from "../support/platform.ts";
import { whyNoNats } from "../../tools/nats-server/binary.ts";

const reason = whyNoInstallation() ?? whyNoBrowser();
const hasEvents = whyNoNats() === undefined;
const cluster = new InstalledCluster();
const system = "kyma-system";
const name = "serverless-dashboard";
const poll = { timeout: patience.cluster };
const children: ChildProcess[] = [];
let browser: Browser;

describe.skipIf(reason !== undefined)(
  `dashboard of a cluster${reason ? ` (skipped: ${reason})` : ""}`,
  () => {
    beforeAll(async () => {
      [browser] = await Promise.all([
        launchBrowser(),
        cluster.start({ moreImages: ["dashboard", ...(hasEvents ? ["eventing"] : [])] }),
      ]);
      const values = path.join(cluster.scratch, "dashboard.json");
      const dashboard = { enabled: true };
      writeFileSync(values, JSON.stringify({ dashboard, ...(await eventingValues()) }));
      const { code, stderr } = await cluster.install("--values", values);
      expect(code, stderr).toBe(0);
      await cluster.client.apply(resources.namespaces, { metadata: { name: "shop" } });
      await cluster.client.create(functions, functionIn("shop", "till", "first"));
    }, 600_000);
    afterAll(async () => {
      await browser?.close();
      for (const child of children) if (child.kill("SIGINT")) await once(child, "exit");
      await cluster.stop();
    }, 200_000);

    test("its Pod runs without a token, and everything is done as its user", async () => {
      const ready = async () => {
        const target = { namespace: system, name };
        const { status } = await cluster.client.get<Deployment>(resources.deployments, target);
        return status?.readyReplicas ?? 0;
      };
      await expect.poll(ready, poll).toBe(1);
      const selector = { namespace: system, labelSelector: `app.kubernetes.io/name=${name}` };
      const [pod] = (await cluster.client.list(resources.pods, selector)).items;
      // The token for the registry's use opens nothing of Kubernetes.
      const volumes = pod?.spec?.volumes?.map((volume) => volume.name);
      expect(volumes).toEqual(["api-server", "registry-usage"]);

      await cluster.untilRunning("shop", "till");
      const url = await forwarded(`service/${name}`);
      const { page, complaints } = await openTab(browser);
      await page.goto(url);
      await logIn(page, "not-a-token");
      await page.getByText("does not accept this token").waitFor();
      await logIn(page, await tokenOf("editor", "edit"));
      await openFunction(page, url);
      await page.getByLabel("Source of till", { exact: true }).click();
      await page.keyboard.press("ControlOrMeta+a");
      await page.keyboard.insertText(`module.exports = { main: () => "second" };`);
      await page.getByRole("button", { name: "Apply" }).click();
      await page.getByText("till is applied.").waitFor();
      await screenshot(page, "cluster-editor");
      const till = () =>
        cluster.client.get<Function>(functions, { namespace: "shop", name: "till" });
      expect(JSON.stringify((await till()).spec.source)).toContain("second");
      expect(complaints).toEqual([]);

      const viewer = await openTab(browser);
      await viewer.page.goto(url);
      await logIn(viewer.page, await tokenOf("viewer", "view"));
      await openFunction(viewer.page, url);
      await viewer.page.getByLabel("Source of till", { exact: true }).waitFor();
      expect(await viewer.page.getByRole("button", { name: "Delete" }).count()).toBe(0);
      // The audit log has no request in the name of the dashboard's own account.
      expect(cluster.asked(`${system}:${name}`)).toEqual([]);
    });

    test("spry dashboard serves it for the kubeconfig's user, who calls a Function by way of the API server", async () => {
      const program = path.join(root, "packages/cli/bin/spry.mjs");
      const args = ["dashboard", "--no-open", "--port=0", "--kubeconfig", cluster.kubeconfig];
      const link = await line(start(process.execPath, [program, ...args]), /http\S+#code=\S+/);
      const { page, complaints } = await openTab(browser);
      await page.goto(link);
      await page.getByRole("link", { name: /^till/ }).filter({ hasText: "Running" }).waitFor();
      await page.getByRole("link", { name: /^till/ }).click();
      await page.getByRole("link", { name: "Try it" }).click();
      const answer = page.getByTestId("answer");
      const asked = async () => {
        await page.getByRole("button", { name: "Send" }).click();
        return answer.textContent();
      };
      await expect.poll(asked, poll).toContain("second");
      await screenshot(page, "cluster-answer");
      await page.getByRole("link", { name: "Logs" }).click();
      await page.getByRole("log").waitFor();
      expect(complaints).toEqual([]);
    });

    test("the console reaches a WebSocket through the API server, and only with the right to", async () => {
      const source = `module.exports = { main: () => "plain", websocket(socket) { socket.send("hello"); } };`;
      const chat = { ...functionIn("shop", "chat", ""), spec: { source: { inline: { source } } } };
      await cluster.client.create(functions, chat);
      await cluster.untilRunning("shop", "chat");
      const url = await forwarded(`service/${name}`);
      const talk = async (account: string) => {
        const { page, complaints } = await openTab(browser);
        await page.goto(url);
        const { stdout } = await kubectl("create", "token", account);
        await logIn(page, stdout.trim());
        await page.getByRole("navigation", { name: "Sections" }).waitFor();
        await page.goto(`${url}/functions/shop/chat/try?with=websocket`);
        await page.getByRole("button", { name: "Connect" }).click();
        return { page, complaints };
      };
      const editor = await talk("editor");
      await editor.page.getByTestId("messages").getByText("hello").waitFor();
      await screenshot(editor.page, "cluster-websocket");
      const viewer = await talk("viewer");
      await viewer.page.getByText("responded with 403").waitFor();
      expect([...editor.complaints, ...viewer.complaints]).toEqual([]);
    });

    test("what the gateways have counted is drawn, and what the registry keeps is shown", async () => {
      const gateway = await forwarded("service/serverless-gateway");
      const ask = () => sent(gateway, "till");
      await expect.poll(ask, poll).toBe(200);
      const url = await forwarded(`service/${name}`);
      const { page, complaints } = await openTab(browser);
      await page.goto(url);
      await logIn(page, (await kubectl("create", "token", "editor")).stdout.trim());
      await page.getByRole("navigation", { name: "Sections" }).waitFor();
      const counted = () =>
        page.evaluate(async () => {
          const { token } = JSON.parse(sessionStorage.getItem("spry.login") ?? "{}") as {
            token: string;
          };
          const headers = { authorization: `Bearer ${token}` };
          const response = await fetch("/metrics/shop/till", { headers });
          return ((await response.json()) as { requests?: Record<string, number> }).requests;
        });
      await expect.poll(counted, poll).toMatchObject({ 200: expect.any(Number) });
      await page.goto(`${url}/functions/shop/till/metrics`);
      await page.getByText("Requests are those through the gateway").waitFor();
      const legend = async (chart: string) => {
        await ask();
        return page.getByRole("region", { name: chart, exact: true }).textContent();
      };
      await expect.poll(() => legend("Requests"), poll).toMatch(/all (?!0\.0\/s)[\d.]+\/s/);
      await expect.poll(() => legend("Response time"), poll).toMatch(/p50 \d+ ms/);
      await expect.poll(() => legend("Pods"), poll).toMatch(/running 1/);
      // The control plane of these tests has no metrics server.
      await page.getByText("this cluster has no metrics server").waitFor();
      await screenshot(page, "cluster-metrics");
      await page.goto(`${url}/registry?ns=shop`);
      const own = page.getByRole("region", { name: "shop/till" });
      await own.getByText("version 1 in the history").waitFor();
      await own.getByText("MiB").or(own.getByText("KiB")).first().waitFor();
      await screenshot(page, "cluster-registry");
      expect(complaints).toEqual([]);
    });

    test.skipIf(!hasEvents)(
      "a user subscribes a Function, and sends what it refused again",
      async () => {
        const source = `let refuses = true;
module.exports = { main: (event) => {
  if (event.data?.accept) refuses = false;
  if (event.data?.order && refuses) throw new Error("no room for this order");
  return "ok";
} };`;
        const ledger = {
          ...functionIn("shop", "ledger", ""),
          spec: { source: { inline: { source } } },
        };
        await cluster.client.create(functions, ledger);
        await cluster.untilRunning("shop", "ledger");
        const url = await forwarded(`service/${name}`);
        const { page, complaints } = await openTab(browser);
        await page.goto(url);
        await logIn(page, (await kubectl("create", "token", "editor")).stdout.trim());
        await page.getByRole("navigation", { name: "Sections" }).waitFor();
        await page.goto(`${url}/events?ns=shop`);
        await page.getByRole("button", { name: "Subscribe" }).first().click();
        const dialog = page.getByRole("dialog");
        await dialog.getByLabel("Function").selectOption("shop/ledger");
        await dialog.getByLabel("Types of events").fill("order.paid.v1");
        await dialog.getByLabel("Source").fill("web");
        await dialog.getByRole("button", { name: "Create" }).click();
        const row = page.getByRole("row", { name: /^ledger-/ });
        await row.getByText("ready").waitFor({ timeout: patience.cluster });
        // How often it is tried is set in YAML.
        const [made] = (await cluster.client.list(subscriptions, { namespace: "shop" })).items;
        await cluster.client.patch(
          subscriptions,
          { namespace: "shop", name: made?.metadata.name ?? "" },
          { spec: { delivery: { maxAttempts: 1 } } },
          { type: "merge" },
        );
        const publisher = await forwarded("service/eventing-publisher-proxy");
        const dead = row.getByRole("button", { name: /dead letter/ });
        const isDead = async () => {
          if ((await dead.count()) > 0) return true;
          const headers = { "content-type": "application/json", ...ceHeaders() };
          await fetch(`${publisher}/publish`, { method: "POST", headers, body: '{"order":1}' });
          return (await dead.count()) > 0;
        };
        await expect.poll(isDead, { ...poll, interval: 2_000 }).toBe(true);
        const gateway = await forwarded("service/serverless-gateway");
        expect(await sent(gateway, "ledger", '{"accept":true}')).toBe(200);
        await dead.click();
        const letters = page.getByRole("dialog", { name: /^Dead letters of ledger-/ });
        await letters.getByText("order.paid.v1").first().waitFor();
        await screenshot(page, "cluster-dead-letters");
        await letters.getByRole("button", { name: "Redrive all" }).click();
        await expect.poll(() => dead.count(), poll).toBe(0);
        expect(complaints).toEqual([]);
      },
    );
  },
);

async function eventingValues(): Promise<object> {
  if (!hasEvents) return {};
  const image = await pushNatsImage(cluster.imageRegistry, cluster.scratch);
  const storage = { size: "1Gi", storageClassName: "of-the-test" };
  return { eventing: { enabled: true, nats: { image, storage, replicas: 1 } } };
}

const ceHeaders = () => ({
  "ce-specversion": "1.0",
  "ce-id": randomUUID(),
  "ce-source": "web",
  "ce-type": "order.paid.v1",
});

/** The status of a request to a Function of the namespace, as one inside the cluster sends it. */
async function sent(gateway: string, fn: string, body?: string): Promise<number | undefined> {
  const headers = {
    host: `${fn}.shop.svc.cluster.local`,
    ...(body !== undefined && { "content-type": "application/json" }),
  };
  const { port } = new URL(gateway);
  const asked = request({ port, headers, method: body === undefined ? "GET" : "POST" });
  asked.end(body);
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

function kubectl(...args: string[]) {
  return run("kubectl", ["--kubeconfig", cluster.kubeconfig, "-n", "shop", ...args]);
}

function functionIn(namespace: string, name: string, answer: string): Function {
  const source = `module.exports = { main: () => ${JSON.stringify(answer)} };`;
  return JSON.parse(functionManifest(name, source, {}, { namespace })) as Function;
}

/** Of a ServiceAccount with one of the roles that every cluster has. */
async function tokenOf(account: string, role: string): Promise<string> {
  await kubectl("create", "serviceaccount", account);
  const subject = `--serviceaccount=shop:${account}`;
  await kubectl("create", "rolebinding", account, `--clusterrole=${role}`, subject);
  return (await kubectl("create", "token", account)).stdout.trim();
}

async function logIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
}

/** By its address: these users may not list Functions of all namespaces. */
async function openFunction(page: Page, url: string): Promise<void> {
  await page.getByRole("navigation", { name: "Sections" }).waitFor();
  await page.goto(`${url}/functions/shop/till`);
}

/** The URL at which `kubectl port-forward` listens. */
async function forwarded(target: string): Promise<string> {
  const args = ["--kubeconfig", cluster.kubeconfig, "-n", system, "port-forward", target, ":80"];
  const [, address] = (await line(start("kubectl", args), /from (127\S+)/)).split(" ");
  return `http://${address}`;
}

function start(command: string, args: string[]): ChildProcess {
  const child = spawn(command, args, {
    cwd: cluster.scratch,
    env: cleanEnvironment(),
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  return child;
}

async function line(child: ChildProcess, wanted: RegExp): Promise<string> {
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  await expect.poll(() => output, poll).toMatch(wanted);
  return wanted.exec(output)?.[0] ?? "";
}
