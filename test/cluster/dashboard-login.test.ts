/**
 * The dashboard's program of a cluster, at a real API server that trusts a real OpenID Connect provider: people log in
 * there, and are at the API server who the provider says they are.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { functionCrd, functions } from "@spry/function";
import { resources } from "@spry/kube";
import { bundleWeb } from "@spry/dashboard";
import { certificateFor, freePort } from "@spry/test-kit";
import { type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { layout } from "../../tools/real-apiserver/components.ts";
import { launchBrowser, openTab, screenshot, whyNoBrowser } from "../support/browser.ts";
import { type LoginProvider, startLoginProvider } from "../support/login-provider.ts";
import { cleanEnvironment, root } from "../support/platform.ts";
import { untilTrue } from "../support/until-true.ts";
import { RealCluster, whyNoCluster } from "../support/real-cluster.ts";

const needsOwn = process.env["KUBECONFIG"] ? "an API server with other arguments is started" : "";
const reason = whyNoCluster() ?? whyNoBrowser() ?? (needsOwn || undefined);
const cluster = new RealCluster();
const scratch = mkdtempSync(path.join(tmpdir(), "dashboard-login-"));
let provider: LoginProvider;
let program: ChildProcess;
let browser: Browser;
let url: string;
/** Short enough that a login is renewed within the test. */
const tokenSeconds = 20;
const startMs = 60_000;

describe.skipIf(reason !== undefined)(
  `login at an identity provider${reason ? ` (skipped: ${reason})` : ""}`,
  () => {
    beforeAll(async () => {
      const port = await freePort();
      url = `http://127.0.0.1:${port}`;
      const tls = await certificateFor("127.0.0.1");
      const authority = path.join(scratch, "provider.crt");
      writeFileSync(authority, tls.crt);
      const redirectUri = `${url}/login/callback`;
      provider = await startLoginProvider({ host: "127.0.0.1", tls, redirectUri, tokenSeconds });
      const apiServerArgs = [
        `--oidc-issuer-url=${provider.issuer}`,
        `--oidc-client-id=${provider.clientId}`,
        `--oidc-ca-file=${authority}`,
        "--oidc-username-claim=sub",
        "--oidc-username-prefix=oidc:",
      ];
      [browser] = await Promise.all([launchBrowser(), cluster.start({ apiServerArgs })]);
      await prepare();
      program = await startProgram(port, tls.crt);
    }, 300_000);
    afterAll(async () => {
      await browser?.close();
      if (program?.kill()) await once(program, "exit");
      await provider?.close();
      await cluster.stop();
      rmSync(scratch, { recursive: true });
    }, 100_000);

    test("a link leads to the provider and back, and the page shows what that user may see", async () => {
      const { page, complaints } = await openTab(browser, { ignoreHTTPSErrors: true });
      await page.goto(`${url}/functions/shop/till`);
      await screenshot(page, "login-provider");
      await logIn(page, "jane");
      // Back where the user was.
      await page.waitForURL("**/functions/shop/till");
      await page.getByRole("heading", { name: "till" }).waitFor();
      expect(page.url()).not.toContain("code=");
      expect(await whoAmI(page)).toBe("oidc:jane");
      // What she may not do is not offered: she may read and no more.
      await page.getByLabel("Source of till").waitFor();
      expect(await page.getByRole("button", { name: "Delete" }).count()).toBe(0);
      // The cookies of this host are the provider's own: Functions of the host would get them.
      const cookies = await page.context().cookies(url);
      const token = await page.evaluate(() => sessionStorage.getItem("spry.login") ?? "");
      expect(token).toContain("eyJ");
      for (const { value } of cookies) expect(token).not.toContain(value);
      expect(complaints).toEqual([]);
    });

    test("a user without any role sees that, and is not logged out", async () => {
      const { page } = await openTab(browser, { ignoreHTTPSErrors: true });
      await page.goto(`${url}/functions`);
      await logIn(page, "nobody");
      await page.getByText("may not").first().waitFor();
      await screenshot(page, "login-nobody");
      expect(await whoAmI(page)).toBe("oidc:nobody");
    });

    test("a login is renewed before its token expires", async () => {
      const { page } = await openTab(browser, { ignoreHTTPSErrors: true });
      await page.goto(`${url}/functions/shop/till`);
      await logIn(page, "jane");
      await page.getByRole("heading", { name: "till" }).waitFor();
      const token = () => page.evaluate(() => sessionStorage.getItem("spry.login"));
      const first = await token();
      await expect.poll(token, { timeout: tokenSeconds * 2_000 }).not.toBe(first);
      expect(await whoAmI(page)).toBe("oidc:jane");
    });

    test("what the provider refuses is said, and a code that another page has begun is not used", async () => {
      const { page } = await openTab(browser, { ignoreHTTPSErrors: true });
      await page.goto(`${url}/login/callback?code=stolen&state=other`);
      await page.getByText("was not begun in this tab").waitFor();
      expect(page.url()).toBe(`${url}/`);
      await page.getByRole("button", { name: "Log in with" }).click();
      await page.waitForURL(`${provider.issuer}/**`);
      await page.getByRole("link", { name: /Cancel/ }).click();
      await page.getByText("refused the login").waitFor();
    });
  },
);

/** A Function, and a user who may see it. Spry itself is not installed. */
async function prepare(): Promise<void> {
  const { client } = cluster;
  await client.apply(resources.customResourceDefinitions, functionCrd());
  await client.apply(resources.namespaces, { metadata: { name: "shop" } });
  const isServed = () =>
    client.list(functions).then(
      () => true,
      () => false,
    );
  await untilTrue("Functions are served", isServed, startMs);
  await client.create(functions, {
    metadata: { namespace: "shop", name: "till" },
    spec: {
      runtime: "nodejs24",
      source: { inline: { source: "module.exports = { main: () => 1 };" } },
    },
  });
  const group = "rbac.authorization.k8s.io";
  await client.raw("POST", `/apis/${group}/v1/clusterrolebindings`, {
    body: {
      apiVersion: `${group}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: "jane" },
      roleRef: { apiGroup: group, kind: "ClusterRole", name: "readers" },
      subjects: [{ apiGroup: group, kind: "User", name: "oidc:jane" }],
    },
  });
  const rules = [
    {
      apiGroups: ["serverless.kyma-project.io"],
      resources: ["functions"],
      verbs: ["get", "list", "watch"],
    },
  ];
  await client.raw("POST", `/apis/${group}/v1/clusterroles`, {
    body: {
      apiVersion: `${group}/v1`,
      kind: "ClusterRole",
      metadata: { name: "readers" },
      rules,
    },
  });
}

/** As its Pod does, without a token of its own. */
async function startProgram(port: number, providerAuthority: string): Promise<ChildProcess> {
  const web = path.join(scratch, "web");
  await bundleWeb(web);
  const server = new URL(cluster.own?.server ?? "");
  const file = path.join(root, "packages/cli/src/in-cluster/dashboard-main.ts");
  const child = spawn(process.execPath, [file], {
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      ...cleanEnvironment(),
      KUBERNETES_SERVICE_HOST: server.hostname,
      KUBERNETES_SERVICE_PORT: server.port,
      SPRY_API_SERVER_CA_FILE: layout(path.dirname(cluster.own?.kubeconfig ?? "")).certificate(
        "ca",
      ),
      SPRY_WEB_DIR: web,
      SPRY_DASHBOARD_HOST: "127.0.0.1",
      SPRY_DASHBOARD_PORT: String(port),
      SPRY_DASHBOARD_URL: url,
      SPRY_OIDC_ISSUER: provider.issuer,
      SPRY_OIDC_CLIENT_ID: provider.clientId,
      SPRY_OIDC_SCOPES: "offline_access",
      SPRY_OIDC_CA: providerAuthority,
    },
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  await untilTrue("the dashboard listens", async () => output.includes("listens"), startMs);
  return child;
}

/** On the provider's pages. Users' browsers trust its certificate; the test's browser is started so that it accepts any. */
async function logIn(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "Log in with" }).click();
  await page.locator("input[name=login]").fill(name);
  await page.locator("input[name=password]").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

/** By the API server's own account of the token that the page has. */
function whoAmI(page: Page): Promise<string> {
  return page.evaluate(async () => {
    const { token } = JSON.parse(sessionStorage.getItem("spry.login") ?? "{}") as {
      token: string;
    };
    const response = await fetch("/k8s/apis/authentication.k8s.io/v1/selfsubjectreviews", {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" }),
    });
    const { status } = (await response.json()) as { status: { userInfo: { username: string } } };
    return status.userInfo.username;
  });
}
