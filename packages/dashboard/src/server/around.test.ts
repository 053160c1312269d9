/** What the server reads for its users besides objects: registry, gateways, events, WebSockets by way of the API server. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { type Transport } from "@spry/kube";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { type Dashboard, startDashboard } from "../index.ts";

const repository = (name: string) => ({
  name,
  kind: "function" as const,
  bytes: 1,
  images: [],
  imageCount: 0,
});
const counted = (code: string, count: number) =>
  [
    `spry_gateway_request_duration_seconds_count{namespace="shop",function="till",code="${code}"} ${count}`,
    `spry_gateway_request_duration_seconds_bucket{namespace="shop",function="till",code="${code}",le="1"} ${count}`,
    `spry_gateway_cold_start_seconds_count{namespace="shop",function="till",} 1`,
  ].join("\n");

let dashboard: Dashboard;
let apiServer: Server;
/** The WebSockets that the API server has got. */
let upgrades: IncomingMessage[];
/** The paths that it has been asked for. */
let asked: string[];

const may: Record<string, RegExp> = {
  admin: /./,
  clerk: /namespaces\/shop\//,
};
const transport: Transport = async (request) => {
  const { pathname, search } = new URL(request.url);
  const user = request.headers.get("authorization")?.split(" ")[1] ?? "";
  if (pathname.endsWith("/selfsubjectreviews"))
    return may[user] ? Response.json({}) : new Response("{}", { status: 401 });
  asked.push(pathname + search);
  return may[user]?.test(pathname)
    ? Response.json({ ok: true })
    : new Response("{}", { status: 403 });
};

beforeAll(async () => {
  apiServer = createServer();
  const sockets = new WebSocketServer({ noServer: true });
  apiServer.on("upgrade", (request, socket, head) => {
    upgrades.push(request);
    sockets.handleUpgrade(request, socket, head, (peer) => peer.send("hello"));
  });
  await new Promise<void>((resolve) => apiServer.listen(0, "127.0.0.1", resolve));
  const server = `http://127.0.0.1:${(apiServer.address() as AddressInfo).port}`;
  dashboard = await startDashboard({
    host: "127.0.0.1",
    port: 0,
    key: Buffer.alloc(32, 7),
    version: "1",
    web: async () => new Map(),
    access: { withToken: transport, sockets: { withToken: { server, namespace: "default" } } },
    gatewayMetrics: async () => [counted("200", 2), counted("200", 3) + "\n" + counted("500", 1)],
    registryUsage: async () => ({
      stored: 2,
      quota: 10,
      previousImages: 3,
      cacheMaxAgeMs: 1,
      repositories: ["shop/till", "shopping/cart", "spry/nodejs24"].map(repository),
    }),
  });
});
beforeEach(() => {
  upgrades = [];
  asked = [];
});
afterAll(async () => {
  await dashboard.close();
  apiServer.closeAllConnections();
  apiServer.close();
});

const get = async (path: string, token: string) => {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(dashboard.url + path, { headers });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};

test("the registry's report is for those who may list the Functions: all, or one namespace's", async () => {
  const names = ({ body }: { body: Record<string, unknown> }) =>
    (body["repositories"] as { name: string }[] | undefined)?.map(({ name }) => name);
  const all = ["shop/till", "shopping/cart", "spry/nodejs24"];
  expect(names(await get("/registry-usage", "admin"))).toEqual(all);
  expect(names(await get("/registry-usage?ns=shop", "clerk"))).toEqual(["shop/till"]);
  for (const path of ["/registry-usage", "/registry-usage?ns=shopping"]) {
    const { status, body } = await get(path, "clerk");
    expect([status, body["message"]]).toEqual([403, expect.stringMatching(/^you may not list/)]);
  }
  expect((await get("/registry-usage?ns=../a", "admin")).status).toBe(400);
  expect((await get("/registry-usage", "stranger")).status).toBe(401);
});

test("what several gateways have counted is added up, for readers of the Function", async () => {
  const { body } = await get("/metrics/shop/till", "clerk");
  expect(body).toEqual({ requests: { 200: 5, 500: 1 }, buckets: [["1", 6]], coldStarts: 3 });
  expect((await get("/metrics/other/till", "clerk")).status).toBe(403);
});

test("events without an address of their own are asked for at the API server, as the user", async () => {
  const { status } = await get("/events/v1/namespaces/shop/subscriptions", "clerk");
  expect(status).toBe(200);
  expect(asked).toEqual(["/apis/eventing.spry.io/v1/namespaces/shop/subscriptions"]);
  expect((await get("/events/v1/pods", "clerk")).status).toBe(400);
});

test("a WebSocket passes the API server with the user's token, for those who may read the Function", async () => {
  const conversation = async (namespace: string) => {
    const { port } = dashboard;
    const socket = new WebSocket(`ws://127.0.0.1:${port}/socket`, {
      origin: `http://127.0.0.1:${port}`,
    });
    const received: Record<string, unknown>[] = [];
    socket.on("message", (data) =>
      received.push(JSON.parse(String(data)) as Record<string, unknown>),
    );
    socket.on("open", () => {
      socket.send(JSON.stringify({ type: "login", token: "clerk" }));
      const target = { namespace, name: "till", path: "/chat?a=1" };
      socket.send(JSON.stringify({ type: "connect", id: 1, ...target }));
    });
    const isThere = () => received.some(({ type }) => type === "message" || type === "end");
    await expect.poll(isThere).toBe(true);
    socket.terminate();
    return received;
  };
  expect(await conversation("shop")).toContainEqual({
    type: "message",
    id: 1,
    text: "hello",
    bytes: 5,
  });
  const [upgrade] = upgrades;
  expect(upgrade?.url).toBe("/api/v1/namespaces/shop/services/till:80/proxy/chat?a=1");
  expect(upgrade?.headers.authorization).toBe("Bearer clerk");
  expect(await conversation("other")).toContainEqual({
    type: "end",
    id: 1,
    error: "you may not read Function other/till",
  });
  expect(upgrades).toHaveLength(1);
});
