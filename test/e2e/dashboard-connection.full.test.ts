/** The dashboard while its platform crashes and comes back; for a cluster; and while Functions answer slowly. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { freePort } from "@spry/test-kit";
import { DashboardUser } from "../support/dashboard.ts";
import { impatientServing } from "../support/serving-settings.ts";
import { cleanEnvironment, functionManifest, root } from "../support/platform.ts";

const user = new DashboardUser({ port: await freePort() });
const { platform } = user;

const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;

test("says that the connection is lost, connects again, and has lost nothing", async () => {
  await platform.k("apply -f -", functionManifest("kept", answering("before")));
  await platform.k("wait --for=condition=Running function/kept --timeout=60s");
  const { page } = await user.open("/functions/default/kept");
  const source = page.getByLabel("Source of kept", { exact: true });
  await source.click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(answering("typed"));
  await platform.kill();
  const banner = page.getByText("The connection was lost");
  await banner.waitFor();
  // What is applied meanwhile is not lost either.
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("The change was not applied").waitFor();
  await platform.start();
  await banner.waitFor({ state: "hidden" });
  expect(await source.textContent()).toContain("typed");
  // Changes of the time between, and those after it, are shown.
  await platform.k("annotate function kept seen=yes");
  await platform.k("scale function kept --replicas=2");
  await page.getByText("2 of 2 ready").waitFor();
  await page.getByRole("button", { name: "Apply" }).click();
  await platform.callUntil("kept.default", ({ body }) => body === "typed");
});

test("spry dashboard serves a page for the cluster of a kubeconfig", async () => {
  const elsewhere = mkdtempSync(path.join(tmpdir(), "kubeconfig-"));
  const kubeconfig = path.join(elsewhere, "config");
  copyFileSync(platform.kubeconfig, kubeconfig);
  const spry = path.join(root, "packages/cli/bin/spry.mjs");
  const args = ["dashboard", "--no-open", "--port=0", "--kubeconfig", kubeconfig];
  const child = spawn(process.execPath, [spry, ...args], {
    cwd: elsewhere,
    env: cleanEnvironment(),
  });
  try {
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    await expect.poll(() => output).toContain("#code=");
    const { page, complaints } = await user.tab();
    await page.goto(output.trim());
    await page.getByRole("link", { name: /^kept/ }).click();
    await page.getByRole("link", { name: "Try it" }).click();
    await page.getByRole("button", { name: "Send" }).click();
    await expect.poll(() => page.getByTestId("answer").textContent()).toContain("typed");
    // A page of the platform's own dashboard has other logins.
    const other = new URL(output.trim());
    expect(other.origin).not.toBe(user.origin);
    expect(complaints).toEqual([]);
  } finally {
    child.kill("SIGINT");
    await once(child, "exit");
    rmSync(elsewhere, { recursive: true });
  }
});

test("a response is shown as it streams, and a cold start is marked", async () => {
  // A Pod that takes its time: the request waits for it.
  const source = `require("node:child_process").execSync("sleep 1");
  module.exports = { main(event) {
    const { request, response } = event.extensions;
    response.write("first\\n");
    if (request.query.go) return void response.end("last\\n");
    return new Promise(() => {});
  } };`;
  await platform.k("apply -f -", impatientServing);
  const scaleConfig = { minReplicas: 0, maxReplicas: 1 };
  await platform.k("apply -f -", functionManifest("stream", source, { scaleConfig }));
  await platform.k("wait --for=condition=Running function/stream --timeout=60s");
  const pods = () => platform.k("get pods -l serving.knative.dev/service=stream -o name");
  await expect.poll(pods, { timeout: 150_000 }).toBe("");
  const { page, complaints } = await user.open("/functions/default/stream/try");
  await page.getByText("none until a request").waitFor();
  await page.getByRole("button", { name: "Send" }).click();
  const answer = page.getByTestId("answer");
  await expect.poll(() => answer.textContent()).toContain("first");
  await page.getByText(/cold start \d+ ms/).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByLabel("Path and query").fill("/?go=1");
  await page.getByRole("button", { name: "Send" }).click();
  await expect.poll(() => answer.textContent()).toContain("last");
  expect(complaints).toEqual([]);
});
