/** The server as browsers and attackers meet it, on a real API server in process. */
import { createServer, request as httpRequest, type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { type ApiServer, createApiServer } from "@spry/apiserver";
import { KubeClient, resources, silentLogger, type Transport } from "@spry/kube";
import { functionCrd, functions } from "@spry/function";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { codeProof, type Dashboard, startDashboard, type WebFiles } from "../index.ts";
import { isEventsPath } from "./proxy.ts";
import { Sessions } from "./sessions.ts";

const key = Buffer.alloc(32, 7);
const files: WebFiles = new Map([
  ["index.html", { type: "text/html", gzip: gzipSync("page") }],
  ["app-1.js", { type: "text/javascript", gzip: gzipSync("script") }],
]);

let api: ApiServer;
let client: KubeClient;
let dashboard: Dashboard;
let gateway: Server;
let recorded: Transport;
/** The requests that the API server has received. */
const passed: Request[] = [];
/** What is in the log of the dashboard's server. */
const warnings: [object, string][] = [];

beforeAll(async () => {
  api = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(api.transport());
  await client.create(resources.customResourceDefinitions, functionCrd());
  recorded = (request) => {
    passed.push(request.clone());
    return api.transport()(request);
  };
  gateway = createServer((request, response) => {
    request.resume();
    response.writeHead(201, { "set-cookie": "a=b", "x-host": request.headers.host ?? "" });
    response.end("<script>alert(1)</script>");
  });
  const echo = new WebSocketServer({ noServer: true });
  gateway.on("upgrade", (request, socket, head) =>
    echo.handleUpgrade(request, socket, head, (peer) => {
      peer.send(`${request.headers.host}${request.url}`);
      peer.on("message", (data, isBinary) => peer.send(data as Buffer, { binary: isBinary }));
      peer.on("message", (data) => {
        if (String(data) === "bytes") peer.send(Buffer.alloc(3));
        if (String(data) === "end") peer.close(4000, "enough");
      });
    }),
  );
  await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
  dashboard = await startDashboard({
    host: "127.0.0.1",
    port: 0,
    key,
    version: "1",
    loginCommand: "spry-here dashboard",
    log: { ...silentLogger, warn: (...each) => void warnings.push(each) },
    web: async () => files,
    gateway: new URL(`http://localhost:${(gateway.address() as AddressInfo).port}`),
    access: { asOwner: recorded, withToken: async () => new Response("{}", { status: 401 }) },
  });
  // The definition is served a moment after it has been stored.
  while (!(await client.list(functions).catch(() => undefined))) await new Promise(setImmediate);
  await client.create(functions, {
    metadata: { name: "dice", namespace: "default" },
    spec: { source: { inline: { source: "module.exports = {}" } } },
  });
});
afterAll(async () => {
  await dashboard.close();
  gateway.close();
  await api.close();
});

interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

function ask(
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string | Buffer } = {},
): Promise<Answer> {
  const { method = "GET", headers, body } = options;
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: "127.0.0.1", port: dashboard.port, path, method, headers },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
        );
        response.on("error", reject);
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

const codeIn = (url: string) => url.split("#code=")[1] ?? "";
const redeem = (code: string) =>
  ask("/login/redeem", { method: "POST", body: JSON.stringify({ code }) });
const logIn = async (): Promise<string> =>
  (JSON.parse((await redeem(codeIn(dashboard.loginUrl()))).body) as { token: string }).token;
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

test("failures of the page are taken from users only, and bounded", async () => {
  const report = (headers: Record<string, string>, body: string) =>
    ask("/problems", { method: "POST", headers, body });
  const body = JSON.stringify({ where: "This view", message: "x is not a function", stack: 5 });
  expect((await report({}, body)).status).toBe(401);
  const user = bearer(await logIn());
  expect((await report(user, body)).status).toBe(200);
  expect((await report(user, "no JSON")).status).toBe(400);
  expect((await report(user, JSON.stringify({ where: "x".repeat(20_000) }))).status).toBe(413);
  const logged = warnings.filter(([, message]) => message.includes("page has failed"));
  expect(logged).toEqual([
    [{ where: "This view", error: "x is not a function", stack: "" }, expect.any(String)],
  ]);
});

describe("a page of another site", () => {
  test.each([
    "evil.example",
    "evil.example:80",
    "127.0.0.1.evil.example",
    "[::1].evil",
    "localhost@evil",
  ])("cannot give the server the name %j", async (host) => {
    expect((await ask("/", { headers: { host } })).status).toBe(403);
  });

  test("can send no request of its own", async () => {
    const own = { host: `127.0.0.1:${dashboard.port}` };
    for (const headers of [
      { ...own, origin: "https://evil.example" },
      { ...own, origin: "null" },
      { ...own, origin: "http://localhost:1" },
      { ...own, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" },
      { ...own, "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors" },
    ])
      expect((await ask("/info", { headers })).status).toBe(403);
    expect((await ask("/info", { headers: own })).status).toBe(200);
  });

  test("cannot frame the page, and nothing foreign runs in it", async () => {
    const { headers } = await ask("/functions/default/dice");
    const policy = String(headers["content-security-policy"]);
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "frame-ancestors 'none'",
      "form-action 'none'",
      "base-uri 'none'",
      "require-trusted-types-for 'script'",
    ])
      expect(policy).toContain(rule);
    expect(policy).not.toMatch(/unsafe|\bhttps?:/);
    expect(headers).toMatchObject({
      "x-frame-options": "DENY",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "cache-control": "no-store",
    });
  });
});

describe("a login", () => {
  test("is given once for a code", async () => {
    const code = codeIn(dashboard.loginUrl());
    expect((await redeem(code)).status).toBe(200);
    const again = await redeem(code);
    expect(again.body).toContain("`spry-here dashboard`");
    const { body } = await ask("/info");
    expect(JSON.parse(body)).toMatchObject({ loginCommand: "spry-here dashboard" });
    expect(again).toMatchObject({ status: 403, body: expect.stringContaining("has been used") });
    expect(again.headers["set-cookie"]).toBeUndefined();
  });

  test("is not given for anything else", async () => {
    for (const code of ["", "x", "__proto__"]) expect((await redeem(code)).status).toBe(403);
    for (const body of ["", "[]", "{", '{"code":1}', `{"code":"${"x".repeat(5000)}"}`])
      expect((await ask("/login/redeem", { method: "POST", body })).status).toBeGreaterThanOrEqual(
        400,
      );
  });

  test("cannot be forged, and is another server's nowhere", async () => {
    const token = await logIn();
    expect((await ask("/k8s/api/v1/namespaces", { headers: bearer(token) })).status).toBe(200);
    const foreign = new Sessions(Buffer.alloc(32, 8));
    const { token: other = "" } = foreign.redeem(foreign.issueCode()) ?? {};
    const later = token.replace(/\.\d+\./, `.${Date.now() + 1e9}.`);
    for (const wrong of [other, later, token.slice(0, -1), `${token}x`, "spry-login.", "x"])
      expect((await ask("/k8s/api/v1/namespaces", { headers: bearer(wrong) })).status).toBe(401);
    expect((await ask("/k8s/api/v1/namespaces")).status).toBe(401);
  });

  test("and a code end after their time; a renewed login goes on", () => {
    let now = 1_000_000;
    const sessions = new Sessions(key, () => now);
    const late = sessions.issueCode();
    const { token = "", expires = 0 } = sessions.redeem(sessions.issueCode()) ?? {};
    now = expires - 1;
    const renewed = sessions.renew(token);
    now = expires;
    expect(sessions.isValid(token)).toBe(false);
    expect(sessions.renew(token)).toBeUndefined();
    expect(sessions.isValid(renewed?.token ?? "")).toBe(true);
    expect(sessions.redeem(late)).toBeUndefined();
    const [soon, later] = [sessions.issueCode(), sessions.issueCode()];
    now += 599_999;
    expect(sessions.redeem(soon)).toBeDefined();
    now += 1;
    expect(sessions.redeem(later)).toBeUndefined();
  });

  test("of which at most a hundred codes wait", () => {
    const sessions = new Sessions(key);
    const codes = Array.from({ length: 101 }, () => sessions.issueCode());
    expect(sessions.redeem(codes[0] ?? "")).toBeUndefined();
    expect(sessions.redeem(codes[1] ?? "")).toBeDefined();
  });

  test("has a link for those alone who can read the key", async () => {
    const issue = (proof: unknown) =>
      ask("/login/code", { method: "POST", body: JSON.stringify({ proof }) });
    const { status, body } = await issue(codeProof(key));
    expect(status).toBe(200);
    expect((await redeem((JSON.parse(body) as { code: string }).code)).status).toBe(200);
    for (const proof of [codeProof(Buffer.alloc(32)), codeProof(key, Date.now() - 60_000), "", 1])
      expect((await issue(proof)).status).toBe(403);
  });
});

describe("the way to the API server", () => {
  test.each([
    "/k8s/",
    "/k8s/etc/passwd",
    "/k8s/api/../login/code",
    "/k8s/api/v1/..%2f..%2fmetrics",
    "/k8s/api/v1/%2e%2e/x",
    "/k8s/api//v1/namespaces",
    "/k8s/api/v1/namespaces\\..\\x",
    "/k8s//evil.example/api",
    "/k8s/api/v1/a?b?c",
    "/k8s/metrics",
    "/k8s/logs/x",
    `/k8s/api/v1/${"x".repeat(5000)}`,
    "/k8s/api/v1/namespaces/a/services/b:80/proxy/x",
    "/k8s/api/v1/namespaces/a/pods/b/proxy",
    "/k8s/api/v1/nodes/n/proxy/stats",
    "/k8s/api/v1/namespaces/a/pods/b/exec?command=sh",
    "/k8s/api/v1/namespaces/a/pods/b/portforward",
  ])("does not lead to %s", async (path) => {
    const before = passed.length;
    const { status } = await ask(path, { headers: bearer(await logIn()) });
    expect(status).toBe(400);
    expect(passed.length).toBe(before);
  });

  test("takes no header along that says who asks, and brings none back that a browser would keep", async () => {
    const headers = {
      ...bearer(await logIn()),
      "impersonate-user": "system:admin",
      "x-remote-user": "root",
      cookie: "a=b",
      accept: "application/json",
    };
    const { headers: answered, status } = await ask("/k8s/api/v1/namespaces", { headers });
    expect(status).toBe(200);
    const names = [...(passed.at(-1)?.headers.keys() ?? [])];
    expect(names.sort()).toEqual(["accept"]);
    expect(answered).toMatchObject({
      "content-security-policy": expect.stringContaining("sandbox"),
      "cache-control": "no-store",
    });
  });

  test("is for bodies of 4 MiB", async () => {
    const { status } = await ask("/k8s/api/v1/namespaces", {
      method: "POST",
      headers: { ...bearer(await logIn()), "content-type": "application/json" },
      body: Buffer.alloc(4 * 1024 ** 2 + 1, 32),
    });
    expect(status).toBe(413);
  });

  test("passes a token of its own on, and nothing of the owner's", async () => {
    const before = passed.length;
    const { status } = await ask("/k8s/api/v1/namespaces", { headers: bearer("someone.else") });
    expect(status).toBe(401);
    expect(passed.length).toBe(before);
  });
});

test.each<[string, boolean]>([
  ["/v1/events?after=1&wait=5", true],
  ["/v1/queue", true],
  ["/v1/namespaces/shop/subscriptions", true],
  ["/v1/namespaces/shop/subscriptions/orders/deadletters/redrive", true],
  ["/v1/namespaces/../queue", false],
  ["/v1/namespaces/a%2f..%2fb/subscriptions", false],
  ["/healthz", false],
  ["//evil.example/v1/queue", false],
  ["/v1/namespaces/a/b/c/d/e/f/g", false],
])("a path of the events' administration: %s is %s", (path, is) => {
  expect(isEventsPath(path)).toBe(is);
});

describe("a call of a Function", () => {
  const call = async (head: object, body = "") =>
    ask("/call", {
      method: "POST",
      headers: bearer(await logIn()),
      body: `${JSON.stringify({ namespace: "default", name: "dice", method: "GET", path: "/", headers: [], ...head })}\n${body}`,
    });

  test("brings its answer as bytes: no cookie and no page of a Function becomes the dashboard's", async () => {
    const { status, headers, body } = await call({});
    expect(status).toBe(200);
    expect(headers["set-cookie"]).toBeUndefined();
    expect(headers).toMatchObject({
      "content-type": "application/octet-stream",
      "content-security-policy": expect.stringContaining("sandbox"),
    });
    const [head = "", text] = body.split("\n");
    expect(JSON.parse(head)).toMatchObject({
      status: 201,
      headers: expect.arrayContaining([
        ["set-cookie", "a=b"],
        ["x-host", "dice.default.localhost"],
      ]),
    });
    expect(text).toBe("<script>alert(1)</script>");
  });

  test.each<[string, object]>([
    ["another host", { name: "evil.example/" }],
    ["a name with a line break", { name: "dice\r\nhost: evil" }],
    ["another namespace by its path", { namespace: "a/../b" }],
    ["a path without a slash", { path: "http://evil.example/" }],
    ["a path that is a host", { path: "//evil.example/" }],
    ["a path that leaves the Function", { path: "/../../api" }],
    ["a path with a line break", { path: "/a\r\nx: y" }],
    ["a header with a line break", { headers: [["x", "a\r\ny: z"]] }],
    ["a header's name with a space", { headers: [["x y", "a"]] }],
    ["the method CONNECT", { method: "CONNECT" }],
    ["too many headers", { headers: Array.from({ length: 101 }, () => ["x", "y"]) }],
  ])("with %s is refused", async (_, head) => {
    expect((await call(head)).status).toBe(400);
  });

  test("cannot name its own host", async () => {
    const { body } = await call({ headers: [["Host", "evil.example"]] });
    expect(body).toContain("dice.default.localhost");
  });

  test("without a gateway brings the API server nothing that says who asks", async () => {
    const remote = await startDashboard({
      host: "127.0.0.1",
      port: 0,
      key,
      version: "1",
      web: async () => files,
      access: { asOwner: recorded, withToken: async () => new Response("{}", { status: 401 }) },
    });
    const { port } = remote;
    const sessions = new Sessions(key);
    const { token = "" } = sessions.redeem(sessions.issueCode()) ?? {};
    const named = ["Impersonate-User", "impersonate-group", "Authorization", "X-Remote-User"];
    const headers = [...named, "X-Own"].map((name) => [name, "a"]);
    const head = { namespace: "default", name: "dice", method: "GET", path: "/", headers };
    await fetch(`http://127.0.0.1:${port}/call`, {
      method: "POST",
      headers: bearer(token),
      body: `${JSON.stringify(head)}\n`,
    });
    await remote.close();
    expect(passed.at(-1)?.url).toContain("/services/dice:80/proxy/");
    expect([...(passed.at(-1)?.headers.keys() ?? [])]).toEqual(["x-own"]);
  });

  test("needs a Function that the user can read", async () => {
    expect((await call({ name: "nothing" })).status).toBe(404);
    expect((await ask("/call", { method: "POST", body: "{}" })).status).toBe(401);
  });
});

describe("the socket of a tab", () => {
  const open = (headers: Record<string, string> = {}) =>
    new WebSocket(`ws://127.0.0.1:${dashboard.port}/socket`, {
      origin: `http://127.0.0.1:${dashboard.port}`,
      headers,
    });
  const closing = (socket: WebSocket) =>
    new Promise<number>((resolve) => {
      socket.on("close", resolve);
      socket.on("error", () => {});
    });

  test("is opened for pages of this origin only", async () => {
    for (const origin of ["http://evil.example", "null", "http://localhost:1"]) {
      const socket = new WebSocket(`ws://127.0.0.1:${dashboard.port}/socket`, { origin });
      expect(await closing(socket)).toBe(1006);
    }
    const without = new WebSocket(`ws://127.0.0.1:${dashboard.port}/socket`);
    expect(await closing(without)).toBe(1006);
    expect(await closing(open({ host: "evil.example" }))).toBe(1006);
  });

  test("carries nothing before a valid login", async () => {
    for (const message of [
      { type: "open", id: 1, path: "/api/v1/namespaces?watch=true" },
      { type: "login", token: "spry-login.1.x.y" },
    ]) {
      const socket = open();
      socket.on("open", () => socket.send(JSON.stringify(message)));
      expect(await closing(socket)).toBe(4401);
    }
  });

  test("leads to a Function's WebSocket, and tells why it ends", async () => {
    const token = await logIn();
    const socket = open();
    const received: { type: string }[] = [];
    socket.on("message", (data) => received.push(JSON.parse(String(data)) as { type: string }));
    const send = (message: object) => socket.send(JSON.stringify(message));
    socket.on("open", () => {
      send({ type: "login", token });
      send({ type: "connect", id: 7, namespace: "default", name: "dice", path: "/chat?a=1" });
    });
    const messages = () => received.slice(1);
    const text = (text: string) => ({ type: "message", id: 7, text, bytes: text.length });
    const opened = [
      { type: "head", id: 7, status: 101, contentType: "" },
      text("dice.default.localhost/chat?a=1"),
    ];
    await expect.poll(messages).toEqual(opened);
    send({ type: "say", id: 7, text: "bytes" });
    const answers = [text("bytes"), { type: "message", id: 7, bytes: 3 }];
    await expect.poll(messages).toEqual([...opened, ...answers]);
    send({ type: "say", id: 7, text: "end" });
    const ended = { type: "end", id: 7, error: "closed with 4000: enough" };
    await expect.poll(messages).toEqual([...opened, ...answers, text("end"), ended]);
    for (const [name, path, error] of [
      ["missing", "/", "Function default/missing not found"],
      ["dice", "/../other", "the path must begin with /"],
    ]) {
      received.length = 1;
      send({ type: "connect", id: 8, namespace: "default", name, path });
      await expect
        .poll(messages)
        .toEqual([{ type: "end", id: 8, error: expect.stringContaining(error ?? "") }]);
    }
    socket.terminate();
  });

  test("is closed when it carries too much, or something else", async () => {
    for (const [message, code] of [
      ["x".repeat(17 * 1024), 1009],
      ["no JSON", 4400],
      ['{"type":"open","id":"1"}', 4400],
    ] as const) {
      const socket = open();
      socket.on("open", () => socket.send(message));
      expect(await closing(socket)).toBe(code);
    }
  });

  test("carries watches, and refuses paths that requests do not take either", async () => {
    const socket = open();
    const messages: { type: string; id?: number; text?: string; error?: string }[] = [];
    socket.on("message", (data: Buffer) => messages.push(JSON.parse(data.toString("utf8"))));
    await new Promise((resolve) => socket.on("open", resolve));
    const send = (message: object) => socket.send(JSON.stringify(message));
    send({ type: "login", token: await logIn() });
    await expect.poll(() => messages.some(({ type }) => type === "welcome")).toBe(true);
    send({ type: "open", id: 1, path: "/api/v1/namespaces/default/configmaps?watch=true" });
    send({ type: "open", id: 2, path: "/api/v1/nodes/n/proxy/x" });
    await expect.poll(() => messages.find(({ id }) => id === 2)?.error).toContain("not reached");
    await expect
      .poll(() => messages.some(({ type, id }) => type === "head" && id === 1))
      .toBe(true);
    await client.create(resources.configMaps, {
      metadata: { name: "new", namespace: "default" },
      data: { text: "ä€😀" },
    });
    await expect
      .poll(() =>
        messages
          .filter(({ id }) => id === 1)
          .map(({ text }) => text)
          .join(""),
      )
      .toContain("ä€😀");
    send({ type: "close", id: 1 });
    socket.close();
  });

  test("carries two hundred streams and no more", async () => {
    const socket = open();
    const refused: string[] = [];
    socket.on("message", (data: Buffer) => {
      const { type, error } = JSON.parse(data.toString("utf8")) as { type: string; error?: string };
      if (type === "end" && error) refused.push(error);
    });
    await new Promise((resolve) => socket.on("open", resolve));
    socket.send(JSON.stringify({ type: "login", token: await logIn() }));
    for (let id = 1; id <= 201; id++)
      socket.send(JSON.stringify({ type: "open", id, path: "/api/v1/namespaces?watch=true" }));
    await expect.poll(() => refused).toEqual(["more than 200 streams"]);
    socket.close();
  });
});
