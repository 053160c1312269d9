/** "Try it" is a client that one can trust: bytes as they came, what was sent said to be sent, streams that end. */
import { expect, test } from "vitest";
import { DashboardUser } from "../support/dashboard.ts";
import { functionManifest } from "../support/platform.ts";

const user = new DashboardUser();
const { platform } = user;

const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const source = `
let open = 0;
export default { async fetch(request) {
  const { pathname } = new URL(request.url);
  if (pathname === "/json") return new Response('{"n":12345678901234567890,"m":1.10}', { headers: { "content-type": "application/json" } });
  if (pathname === "/png") return new Response(Buffer.from("${png}", "base64"), { headers: { "content-type": "image/png" } });
  if (pathname === "/latin") return new Response(Buffer.from([0xe4]), { headers: { "content-type": "text/plain; charset=iso-8859-1" } });
  if (pathname === "/large") return new Response("x".repeat(2_000_000), { headers: { "content-type": "text/plain" } });
  if (pathname === "/fail") { console.error("it failed for a reason"); return new Response("no", { status: 500 }); }
  if (pathname === "/open") return new Response(String(open));
  if (pathname === "/stream") {
    open++;
    let timer;
    return new Response(new ReadableStream({
      start(c) { timer = setInterval(() => c.enqueue(new TextEncoder().encode("tick ")), 50); },
      cancel() { clearInterval(timer); open--; },
    }), { headers: { "content-type": "text/plain" } });
  }
  return new Response("ok");
} };`;

test("shows what has come, in the form that it has", async () => {
  await platform.k("apply -f -", functionManifest("client", source));
  await platform.k("wait --for=condition=Running function/client --timeout=60s");
  const { page, complaints } = await user.open("/functions/default/client/try");
  const answer = page.getByTestId("answer");
  const get = async (path: string) => {
    await page.getByLabel("Path and query").fill(path);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("button", { name: "Send" }).waitFor();
  };
  await get("/json");
  await expect.poll(() => answer.textContent()).toContain('"n": 12345678901234567890');
  expect(await answer.textContent()).toContain('"m": 1.10');
  await page.getByRole("button", { name: "Raw" }).click();
  await expect.poll(() => answer.textContent()).toContain('{"n":12345678901234567890,"m":1.10}');
  await get("/png");
  const picture = answer.getByRole("img");
  await expect.poll(() => picture.evaluate((img: HTMLImageElement) => img.naturalWidth)).toBe(1);
  await page.getByRole("button", { name: "Hex" }).click();
  await answer.getByText(/89 50 4e 47/).waitFor();
  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  expect((await downloading).suggestedFilename()).toBe("client.png");
  await user.shot(page, "console-hex");
  await get("/latin");
  await answer.getByText("ä", { exact: true }).waitFor();
  await get("/large");
  await answer.getByText("1.0 MiB of 1.9 MiB are shown; the download has all of it").waitFor();
  await get("/fail");
  await page.getByRole("link", { name: "See what the Function wrote" }).click();
  await page.getByRole("log").getByText("it failed for a reason").waitFor();
  expect(complaints).toEqual([]);
});

test("says what was sent and what was not, and ends what is left", async () => {
  await platform.k("apply -f -", functionManifest("client", source));
  await platform.k("wait --for=condition=Running function/client --timeout=60s");
  const { page, complaints } = await user.open("/functions/default/client/try");
  const open = async () => (await platform.call("client.default", { path: "/open" })).body;
  const path = page.getByLabel("Path and query");
  const send = page.getByRole("button", { name: "Send" });
  await page.getByLabel("Headers").fill("X-A: b\nHost: x");
  await page.getByText("line 2: Host is set by the dashboard").waitFor();
  expect(await send.isDisabled()).toBe(true);
  await page.getByLabel("Headers").fill("");
  await path.fill("//x");
  await send.click();
  await page.getByText("It was not sent").waitFor();
  // The connection ends after it was sent.
  await page.route("**/call", (route) => route.abort("connectionreset"));
  await path.fill("/");
  await send.click();
  await page.getByText("It was sent, and no response arrived").waitFor();
  await page.unroute("**/call");
  await path.fill("/stream");
  await send.click();
  await page
    .getByTestId("answer")
    .getByText(/tick tick/)
    .waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("The response was cut").waitFor();
  await page.getByRole("button", { name: /200 GET \/stream/ }).waitFor();
  await user.shot(page, "console-stopped");
  await expect.poll(open).toBe("0");
  await send.click();
  await page
    .getByTestId("answer")
    .getByText(/tick tick/)
    .waitFor();
  await page.locator('nav.tabs a[href$="/settings"]').click();
  await expect.poll(open).toBe("0");
  expect(complaints).toEqual([]);
});

test("a 500 leads to what the Function wrote for this request, and to nothing else", async () => {
  const source = `module.exports = { main(event) {
    const { n } = event.extensions.request.query;
    console.log("handling " + n);
    if (n === "2") throw new Error("failed at " + n);
    return "ok";
  } };`;
  await platform.k("apply -f -", functionManifest("failing", source));
  await platform.k("wait --for=condition=Running function/failing --timeout=60s");
  await platform.call("failing.default", { path: "/?n=1" });
  const { page, complaints } = await user.open("/functions/default/failing/try");
  // The first request is not around the second one.
  await page.waitForTimeout(2_500);
  const path = page.getByLabel("Path and query");
  await path.fill("/?n=2");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "See what the Function wrote during this request" }).click();
  const log = page.getByRole("log");
  await log.getByText("handling 2").waitFor();
  expect(await log.getByText("handling 1").count()).toBe(0);
  await page.getByRole("button", { name: "Show all lines" }).click();
  await log.getByText("handling 1").waitFor();
  expect(complaints).toEqual([]);
});
