/** What the console sends, and what its "Copy as curl" sends, are the same bytes: one server gets both. */
import { execFile } from "node:child_process";
import { createServer, type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { promisify } from "node:util";
import { type ApiServer, createApiServer } from "@spry/apiserver";
import { functionCrd, functions } from "@spry/function";
import { KubeClient, resources } from "@spry/kube";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Dashboard, startDashboard } from "../index.ts";
import { asCommand, type CallRequest, headersOf, sendsBody } from "../web/state/call-request.ts";

const run = promisify(execFile);

let api: ApiServer;
let dashboard: Dashboard;
let gateway: Server;
let token: string;
/** Of the requests that the gateway has received: all but what belongs to a connection. */
const received: object[] = [];

beforeAll(async () => {
  api = await createApiServer({ dataDir: ":memory:" });
  const client = new KubeClient(api.transport());
  await client.create(resources.customResourceDefinitions, functionCrd());
  gateway = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { rawHeaders, method, url } = request;
      const headers = rawHeaders.flatMap((name, at) =>
        at % 2 === 0 && !/^(?:host|connection|transfer-encoding|content-length)$/i.test(name)
          ? [[name.toLowerCase(), rawHeaders[at + 1]]]
          : [],
      );
      received.push({ method, url, headers, body: Buffer.concat(chunks).toString("hex") });
      response.end("ok");
    });
  });
  await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
  dashboard = await startDashboard({
    host: "127.0.0.1",
    port: 0,
    key: Buffer.alloc(32, 7),
    version: "1",
    web: async () => new Map(),
    gateway: new URL(`http://127.0.0.1:${(gateway.address() as AddressInfo).port}`),
    access: { asOwner: api.transport(), withToken: api.transport() },
  });
  while (!(await client.list(functions).catch(() => undefined))) await new Promise(setImmediate);
  await client.create(functions, {
    metadata: { name: "dice", namespace: "default" },
    spec: { source: { inline: { source: "module.exports = {}" } } },
  });
  const code = dashboard.loginUrl().split("#code=")[1];
  const login = await fetch(`${dashboard.url}/login/redeem`, {
    method: "POST",
    body: JSON.stringify({ code }),
  });
  ({ token } = (await login.json()) as { token: string });
});
afterAll(async () => {
  await dashboard.close();
  gateway.close();
  await api.close();
});

const post = { method: "POST", path: "/", headers: "", body: "a" };
test.each<[string, CallRequest]>([
  ["a GET", { method: "GET", path: "/a?b=c&d=%20", headers: "X-A: b", body: "not sent" }],
  ["a HEAD", { method: "HEAD", path: "/", headers: "", body: "" }],
  ["a DELETE with a body", { ...post, method: "DELETE" }],
  ["a body that begins with @", { ...post, body: "@/etc/hostname" }],
  ["quotes, lines and signs", { ...post, body: 'it\'s "$HOME" `x` \\n\n\r\n€ 👍' }],
  ["an empty header", { ...post, headers: "X-Empty:\nX-Full: 1" }],
  ["a header twice, with quotes", { ...post, headers: "X-A: it's\nX-A: 2" }],
  ["a type of its own", { ...post, headers: "content-type: application/json", body: "{}" }],
  ["its own Accept and User-Agent", { ...post, headers: "Accept: a/b\nUser-Agent: me" }],
  ["brackets in the path", { ...post, path: "/a[1-3]{x,y}?z=[]" }],
  ["only form-like text", { ...post, body: "a=b&c=d" }],
])("%s", async (_, request) => {
  const { method, path, headers, body } = request;
  received.length = 0;
  const head = { namespace: "default", name: "dice", method, path, headers: headersOf(headers) };
  const answer = await fetch(`${dashboard.url}/call`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: `${JSON.stringify(head)}\n${sendsBody(request) ? body : ""}`,
  });
  expect(await answer.text()).toContain('"status":200');
  const port = (gateway.address() as AddressInfo).port;
  await run("sh", [
    "-c",
    `${asCommand.curl(`http://127.0.0.1:${port}/`, request)} -s -o /dev/null`,
  ]);
  const [console, curl] = received;
  expect(received).toHaveLength(2);
  expect(curl).toEqual(console);
});
