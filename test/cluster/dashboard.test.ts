/** The dashboard of a cluster: the installation's Deployment, which has no rights of its own, and `spry dashboard` with a kubeconfig. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import path from "node:path";
import { type Function, functions } from "@spry/function";
import { type Deployment, resources } from "@spry/kube";
import { patience } from "@spry/test-kit";
import { type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launchBrowser, openTab, screenshot, whyNoBrowser } from "../support/browser.ts";
import { InstalledCluster, whyNoInstallation } from "../support/installed-cluster.ts";
import { cleanEnvironment, functionManifest, root, run } from "../support/platform.ts";

const reason = whyNoInstallation() ?? whyNoBrowser();
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
        cluster.start({ moreImages: ["dashboard"] }),
      ]);
      const values = path.join(cluster.scratch, "dashboard.json");
      writeFileSync(values, JSON.stringify({ dashboard: { enabled: true } }));
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
      const volumes = pod?.spec?.volumes?.map((volume) => volume.name);
      expect(volumes).toEqual(["api-server"]);

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

    test("what the gateways have counted, and what the registry keeps, is shown", async () => {
      const gateway = new URL(await forwarded("service/serverless-gateway"));
      const ask = async () => {
        const options = { port: gateway.port, headers: { host: "till.shop.svc.cluster.local" } };
        const [response] = (await once(get(options), "response")) as [IncomingMessage];
        response.resume();
        return response.statusCode;
      };
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
      await page.goto(`${url}/registry?ns=shop`);
      const own = page.getByRole("region", { name: "shop/till" });
      await own.getByText("version 1 in the history").waitFor();
      await own.getByText("MiB").or(own.getByText("KiB")).first().waitFor();
      await screenshot(page, "cluster-registry");
      expect(complaints).toEqual([]);
    });
  },
);

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
