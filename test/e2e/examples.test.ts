/** Every directory of examples/, applied as its README says, called, and its answers looked at. */
import { readdirSync, readFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import path from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { findPython } from "@spry/machine";
import { GitHttpServer, TestRepository } from "@spry/source/testing";
import { type Answer, type CallOptions } from "../support/calls.ts";
import { enginePlatform, onCluster } from "../support/engine.ts";
import { allowGitServers } from "../support/git-addresses.ts";
import { root } from "../support/platform.ts";

const examples = path.join(root, "examples");
const platform = enginePlatform();

const python = (await findPython("3.12")) !== undefined;

interface Example {
  /** Of its Functions, when they are not one of the directory's name in `default`. */
  functions?: string[];
  needs?: { is: boolean; what: string };
  /** Instead of `kubectl apply -f examples/<name>/`. */
  apply?: () => Promise<void>;
  works: () => Promise<void>;
}

const python312 = { is: python, what: "Python 3.12" };
const json = { "content-type": "application/json" };

const rows: Record<string, Example> = {
  hello: {
    works: async () =>
      expect(await text("hello.default", "/?name=Ada")).toBe(
        "Hello, Ada! This is hello on nodejs24.\n",
      ),
  },
  "python-hello": {
    needs: python312,
    works: async () =>
      expect(await text("python-hello.default", "/?name=Ada")).toBe(
        "Hello, Ada! A million is 1.0 million.\n",
      ),
  },
  "json-api": { works: crud },
  typescript: {
    works: async () => {
      const path = "/?cents=250&currency=USD";
      expect(await call("typescript.default", { path })).toMatchObject({
        status: 200,
        body: '{"currency":"USD","cents":275}',
      });
      const refused = await call("typescript.default", { path: "/?currency=constructor" });
      expect(refused.status).toBe(400);
    },
  },
  sse: { works: serverSentEvents },
  websocket: { works: chat },
  fastapi: {
    needs: python312,
    works: async () => {
      expect(await text("fastapi.default", "/parts/bolt")).toBe('{"part":"bolt","count":12}');
      const deliver = (count: number) =>
        post("fastapi.default", { part: "bolt", count }, { path: "/deliveries" });
      expect(await deliver(3)).toMatchObject({ status: 201, body: '{"part":"bolt","count":15}' });
      expect(await deliver(0)).toMatchObject({
        status: 422,
        body: expect.stringContaining("greater than 0"),
      });
      expect(await text("fastapi.default", "/docs")).toContain("swagger");
    },
  },
  "python-async": {
    needs: python312,
    works: async () => {
      const answer = JSON.parse(await text("python-async.default", "/?shops=corner,market,bar"));
      expect(answer).toMatchObject({ cheapest: { shop: "bar", price: 13 }, asked: 3 });
    },
  },
  "secret-configmap": {
    works: async () => {
      const greeting = await text("secret-configmap.default", "/?name=Ada");
      // printf 'Good morning, Ada!' | openssl dgst -sha256 -hmac change-me
      const signature = "bdac42cf31a9b96106bf80deed3a3ab7b3fe252105775c95f22f316b711a8e10";
      expect(JSON.parse(greeting)).toEqual({ text: "Good morning, Ada!", signature });
      await platform.k('patch configmap greeter-settings -p {"data":{"greeting":"Hi"}}');
      await platform.callUntil("secret-configmap.default", ({ body }) => body.includes('"Hi, '));
    },
  },
  "npm-dependencies": {
    works: async () => {
      const page = { title: "Hello", markdown: "Some *Markdown*." };
      expect(await post("npm-dependencies.default", page)).toMatchObject({
        status: 200,
        headers: { "content-type": "text/html; charset=utf-8" },
        body: "<h1>Hello</h1>\n<p>Some <em>Markdown</em>.</p>\n",
      });
      const refused = await post("npm-dependencies.default", { ...page, title: "" });
      expect(refused).toMatchObject({ status: 400, body: expect.stringContaining("at title") });
    },
  },
  "image-resize": {
    works: async () => {
      const resize = (body: Buffer) =>
        call("image-resize.default", {
          path: "/?width=20",
          headers: { "content-type": "image/png" },
          body,
        });
      const webp = await resize(picture(40, 30));
      expect(webp).toMatchObject({ status: 200, headers: { "content-type": "image/webp" } });
      expect(webp.body).toMatch(/^RIFF.*WEBP/s);
      expect((await resize(Buffer.from("no picture"))).status).toBe(422);
    },
  },
  "from-zero": {
    works: async () => {
      expect(JSON.parse(await text("from-zero.default", "/"))).toMatchObject({
        upForSeconds: expect.any(Number),
      });
      expect(await platform.k("get ksvc from-zero -o name")).toContain("from-zero");
    },
  },
  "function-to-function": {
    functions: ["shop", "prices"],
    works: async () => {
      // On a cluster a Service may refuse connections for a moment after its first Pod is ready.
      const answers = ({ status }: Answer) => status === 200;
      const { body } = await platform.callUntil("shop.default", answers, { path: "/?part=gear" });
      expect(body).toBe('{"part":"gear","price":"12.99 EUR"}');
      expect((await call("shop.default", { path: "/?part=moon" })).status).toBe(404);
    },
  },
  cloudevents: {
    needs: { is: !onCluster, what: "Eventing" },
    functions: ["orders", "warehouse"],
    works: async () => {
      await platform.k(
        "wait --for=jsonpath={.status.ready}=true subscription/warehouse --timeout=30s",
      );
      expect(await post("orders.default", { part: "gear" })).toMatchObject({ status: 202 });
      const seen = async () => JSON.parse(await text("warehouse.default")) as unknown[];
      await expect.poll(seen).toHaveLength(1);
      const headers = {
        "ce-specversion": "1.0",
        "ce-type": "shop.order.placed.v1",
        "ce-source": "me",
        "ce-id": "1",
      };
      await post("warehouse.default", { part: "bolt" }, { headers });
      expect(JSON.parse(await text("warehouse.default"))).toEqual([
        {
          id: expect.stringMatching(/^[0-9a-f-]{36}$/),
          source: "orders",
          order: { number: expect.any(Number), part: "gear" },
        },
        { id: "1", source: "me", order: { part: "bolt" } },
      ]);
    },
  },
  cron: {
    needs: { is: !onCluster, what: "events, which are switched off there" },
    works: async () => {
      const ran = await platform.spry(["schedule", "run", "cron", "cleaning"]);
      expect(ran).toMatchObject({ code: 0, stderr: "" });
      const { body } = await platform.callUntil("cron.default", (answer) =>
        answer.body.includes("cleaning"),
      );
      expect(JSON.parse(body)).toContainEqual({
        schedule: "cleaning",
        at: expect.stringMatching(/^\d{4}-/),
        keepDays: 30,
      });
    },
  },
  autoscale: {
    needs: { is: !onCluster, what: "what measures Pods (metrics-server)" },
    works: async () => {
      const hpa = JSON.parse(await platform.k("get hpa autoscale -o json"));
      expect(hpa.spec).toMatchObject({ minReplicas: 1, maxReplicas: 3 });
      const isScaled = ({ body }: { body: string }) =>
        instances.add(JSON.parse(body).instance).size > 1;
      const instances = new Set<string>();
      // Load, until another Pod answers, too.
      const callers = Array.from({ length: 3 }, () =>
        platform.callUntil("autoscale.default", isScaled, { timeoutMs: 100_000 }),
      );
      await Promise.all(callers);
    },
  },
  "git-source": {
    apply: fromLocalRepository,
    works: async () => {
      expect(await post("git-source.default", { any: "thing" })).toMatchObject({ body: "Stored" });
      expect(await platform.k("get function git-source -o jsonpath={.status.commit}")).toMatch(
        /^[0-9a-f]{40}$/,
      );
    },
  },
};

/**
 * Installing their packages takes most of this file's time. Faster rows cover what they show: ASGI (runtimes/python), native modules of
 * both languages (packages/image), the autoscaler (packages/machine).
 */
const onlyInFull = ["fastapi", "image-resize", "autoscale"];
const chosen = Object.entries(rows).filter(
  ([name]) => process.env["SPRY_TEST_FULL"] || !onlyInFull.includes(name),
);

test("each directory has a row, and each row a directory", () => {
  const directories = readdirSync(examples, { withFileTypes: true }).filter((each) =>
    each.isDirectory(),
  );
  expect(Object.keys(rows).toSorted()).toEqual(directories.map(({ name }) => name).toSorted());
});

describe.each(chosen)("examples/%s", (name, { needs, apply, works, functions }) => {
  test("its README says in ten lines how to apply and call it", () => {
    const readme = readFileSync(path.join(examples, name, "README.md"), "utf8");
    expect(readme.trimEnd().split("\n").length).toBeLessThanOrEqual(10);
    expect(readme).toContain(`kubectl apply -f examples/${name}/`);
    expect(readme).toMatch(/curl .*\.default\.localhost:8080/m);
  });

  test.skipIf(needs?.is === false)(
    needs?.is === false ? `skipped: ${needs.what} is not here` : "runs as it is",
    async () => {
      await (apply?.() ?? platform.k(`apply -f ${examples}/${name}/`));
      for (const each of functions ?? [name])
        await platform.k(`wait --for=condition=Running function/${each} --timeout=110s`);
      await works();
      // The next ones get the machine to themselves.
      await platform.k(`delete -f ${examples}/${name}/ --wait=false`);
    },
  );
});

const call = (host: string, options: CallOptions = {}) => platform.call(host, options);

const text = async (host: string, path = "/") => (await call(host, { path })).body;

const post = (
  host: string,
  value: unknown,
  { path = "/", headers = {} }: { path?: string; headers?: Record<string, string> } = {},
) => call(host, { path, headers: { ...json, ...headers }, body: JSON.stringify(value) });

async function crud(): Promise<void> {
  const at = (path: string, method: string, value?: unknown) =>
    call("json-api.default", {
      path,
      method,
      headers: json,
      ...(value === undefined ? {} : { body: JSON.stringify(value) }),
    });
  expect(await at("/notes", "POST", { title: " Buy milk " })).toMatchObject({
    status: 201,
    headers: { location: "/notes/1" },
    body: '{"id":"1","title":"Buy milk","done":false}',
  });
  expect(await at("/notes/1", "PUT", { title: "Buy milk", done: true })).toMatchObject({
    status: 200,
    body: '{"id":"1","title":"Buy milk","done":true}',
  });
  expect(await at("/notes", "POST", { title: "" })).toMatchObject({
    status: 400,
    body: '{"error":"title: a text that is not empty is required"}',
  });
  expect((await at("/notes", "PATCH")).status).toBe(405);
  expect(await at("/notes/1", "DELETE")).toMatchObject({ status: 204, body: "" });
  expect((await at("/notes/1", "GET")).status).toBe(404);
  expect(await at("/notes", "GET")).toMatchObject({ status: 200, body: "[]" });
}

/** The first event is there before the last one is sent. */
async function serverSentEvents(): Promise<void> {
  const chunks: string[] = [];
  const { hostname, port } = platform.gateway;
  const headers = { host: "sse.default.localhost" };
  await new Promise((resolve, reject) => {
    httpRequest({ host: hostname, port, path: "/?from=2", headers }, (response) => {
      expect(response.headers["content-type"]).toBe("text/event-stream");
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => chunks.push(chunk));
      response.on("end", resolve);
    })
      .on("error", reject)
      .end();
  });
  expect(chunks.length).toBeGreaterThan(1);
  const ticks = [...chunks.join("").matchAll(/^data: (.*)$/gm)].map(([, data = ""]) =>
    JSON.parse(data),
  );
  expect(ticks).toEqual([{ left: 2 }, { left: 1 }, { left: 0, text: "Lift-off!" }]);
}

async function chat(): Promise<void> {
  const ada = await guest("Ada");
  const bob = await guest("Bob");
  bob.socket.send("Good day");
  await expect.poll(() => ada.heard).toContainEqual({ from: "Bob", text: "Good day" });
  expect(JSON.parse(await text("websocket.default"))).toEqual({ present: ["Ada", "Bob"] });
  bob.socket.close();
  await expect.poll(() => ada.heard).toContainEqual({ left: "Bob", present: 1 });
  ada.socket.close();
}

async function guest(name: string): Promise<{ socket: WebSocket; heard: unknown[] }> {
  const { host } = platform.gateway;
  const headers = { host: "websocket.default.localhost" };
  const socket = new WebSocket(`ws://${host}/?name=${name}`, { headers });
  const heard: unknown[] = [];
  socket.on("message", (data: Buffer) => heard.push(JSON.parse(data.toString())));
  await expect.poll(() => heard).toContainEqual(expect.objectContaining({ joined: name }));
  return { socket, heard };
}

/** The same manifest with a server and code of our own: tests need no others. */
async function fromLocalRepository(): Promise<void> {
  using repository = new TestRepository("serverless");
  const manifest = readFileSync(path.join(examples, "git-source", "function.yaml"), "utf8");
  const directory = /baseDir: \/(.*)/.exec(manifest)?.[1] ?? "";
  repository.commit({
    [`${directory}/handler.js`]: receiver,
    [`${directory}/package.json`]: "{}",
  });
  await using server = await GitHttpServer.start({
    root: repository.root,
    host: platform.hostAddress,
  });
  await allowGitServers(platform, [platform.hostAddress]);
  const local = manifest.replace(/url: .*\/(.*\.git)/, `url: ${server.origin}/$1`);
  await platform.k("apply -f -", local);
  await platform.k("wait --for=condition=Running function/git-source --timeout=110s");
}

const receiver = "module.exports = { main: ({ data }) => (data ? 'Stored' : '') };";

/** A grey picture as PNG (W3C PNG, third edition, section 5). */
function picture(width: number, height: number): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const frame = Buffer.alloc(body.length + 8);
    frame.writeUInt32BE(data.length, 0);
    body.copy(frame, 4);
    frame.writeUInt32BE(crc32(body), body.length + 4);
    return frame;
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 8;
  const rows = Buffer.alloc((width + 1) * height, 128);
  for (let row = 0; row < height; row++) rows[row * (width + 1)] = 0;
  const signature = Buffer.from("89504e470d0a1a0a", "hex");
  const chunks = [chunk("IHDR", header), chunk("IDAT", deflateSync(rows))];
  return Buffer.concat([signature, ...chunks, chunk("IEND", Buffer.alloc(0))]);
}
