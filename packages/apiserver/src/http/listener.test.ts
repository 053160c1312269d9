import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, request, type RequestOptions } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiServer, createApiServer, type Listener } from "../index.ts";

let directory: string;
let server: ApiServer;
let listener: Listener;
let agent: Agent;

const read = (name: string) => readFileSync(path.join(directory, name), "utf8");

function certificate(name: string, subject: string, signedBy?: string): void {
  const file = (each: string) => path.join(directory, each);
  const args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  args.push(
    "-days",
    "2",
    "-subj",
    subject,
    "-keyout",
    file(`${name}.key`),
    "-out",
    file(`${name}.crt`),
  );
  args.push("-addext", "subjectAltName=IP:127.0.0.1");
  if (signedBy) args.push("-CA", file(`${signedBy}.crt`), "-CAkey", file(`${signedBy}.key`));
  execFileSync("openssl", args, { stdio: "ignore" });
}

beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), "listener-"));
  certificate("ca", "/CN=ca");
  certificate("other", "/CN=other");
  certificate("server", "/CN=server", "ca");
  certificate("admin", "/O=system:masters/CN=admin", "ca");
  certificate("guest", "/CN=guest", "ca");
  certificate("forged", "/O=system:masters/CN=admin", "other");
  server = await createApiServer({ dataDir: ":memory:" });
  const files = { cert: read("server.crt"), key: read("server.key"), clientCa: read("ca.crt") };
  listener = await server.listen({ host: "127.0.0.1", port: 0, ...files });
  agent = new Agent({
    keepAlive: true,
    ca: read("ca.crt"),
    cert: read("admin.crt"),
    key: read("admin.key"),
  });
});
afterAll(async () => {
  agent.destroy();
  await server.close();
  rmSync(directory, { recursive: true });
});

interface Answer {
  code: number;
  body: string;
  reused: boolean;
}

function ask(options: RequestOptions, body?: string | Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: "127.0.0.1", port: listener.port, path: "/api/v1/pods", ...options },
      (response) => {
        let text = "";
        response.on("data", (chunk) => (text += chunk));
        response.on("end", () =>
          resolve({ code: response.statusCode ?? 0, body: text, reused: outgoing.reusedSocket }),
        );
        response.on("error", reject);
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

const as = (user?: string) => ({
  ca: read("ca.crt"),
  agent: false as const,
  ...(user && { cert: read(`${user}.crt`), key: read(`${user}.key`) }),
});

test.each([
  ["an administrator", "admin", 200],
  ["a user without rights", "guest", 403],
  ["a client without a certificate", undefined, 401],
  ["a client with a certificate of another authority", "forged", 401],
])("%s is answered %s with %d", async (_, user, code) => {
  const answer = await ask(as(user));
  expect(answer.code).toBe(code);
  expect(JSON.parse(answer.body)).toMatchObject(
    code === 200 ? { kind: "PodList" } : { kind: "Status", code },
  );
});

test("a connection serves many requests", async () => {
  await ask({ agent });
  expect((await ask({ agent })).reused).toBe(true);
});

test("a body that is too long is refused, and the connection lives on", async () => {
  const path = "/api/v1/namespaces/default/configmaps";
  const headers = { "content-type": "application/json" };
  const answer = await ask({ agent, method: "POST", path, headers }, Buffer.alloc(4 << 20, "a"));
  expect(answer.code).toBe(413);
  expect((await ask({ agent })).code).toBe(200);
});

test("a request may come while the answer to the one before is still on its way", async () => {
  const data = { text: "x".repeat(900_000) };
  const names = Array.from({ length: 20 }, (_, i) => `large-${i}`);
  const configMap = (name: string) => JSON.stringify({ metadata: { name }, data });
  const configMaps = "/api/v1/namespaces/default/configmaps";
  const headers = { "content-type": "application/json" };
  for (const name of names)
    await ask({ agent, method: "POST", path: configMaps, headers }, configMap(name));
  const socket = connect({
    host: "127.0.0.1",
    port: listener.port,
    ca: read("ca.crt"),
    cert: read("admin.crt"),
    key: read("admin.key"),
  });
  socket.write(`GET ${configMaps} HTTP/1.1\r\nhost: x\r\n\r\n`);
  // Unread, the rest of it fills the buffers between the two.
  await once(socket, "readable");
  const body = configMap("last");
  const head = `POST ${configMaps} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n`;
  const about = `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  socket.write(head + about + body);
  let received = "";
  for await (const chunk of socket) received += String(chunk);
  expect(received.match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 201"]);
  for (const name of [...names, "last"])
    await ask({ agent, method: "DELETE", path: `${configMaps}/${name}` });
});

test("a watch streams, and ends with the client's patience", async () => {
  const started = performance.now();
  const { body } = await ask({ agent, path: "/api/v1/namespaces?watch=1&timeoutSeconds=1" });
  const names = body
    .trim()
    .split("\n")
    .map(
      (line) =>
        (JSON.parse(line) as { object: { metadata: { name: string } } }).object.metadata.name,
    );
  expect(names).toEqual(["default", "kube-node-lease", "kube-public", "kube-system"]);
  expect(performance.now() - started).toBeGreaterThan(900);
});

test("who goes away is not waited for", async () => {
  const stop = new AbortController();
  const watching = ask({ ...as("admin"), path: "/api/v1/pods?watch=1", signal: stop.signal }).catch(
    (error: Error) => error.name,
  );
  setTimeout(() => stop.abort(), 100);
  expect(await watching).toBe("AbortError");
});

const exec = "/api/v1/namespaces/default/pods/web/exec?command=true&stdout=true";
const webSocket = (protocol: string) => ({
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
  "sec-websocket-protocol": protocol,
});
const known = webSocket("v5.channel.k8s.io");

test.each<[string, string | undefined, string, Record<string, string>, number, RegExp]>([
  ["no certificate", undefined, exec, known, 401, /Unauthorized/],
  ["no rights", "guest", exec, known, 403, /forbidden/],
  [
    "a Pod that is not there",
    "admin",
    exec.replace("web", "nobody"),
    known,
    404,
    /nobody.. not found/,
  ],
  ["an unknown container", "admin", `${exec}&container=x`, known, 400, /container x is not valid/],
  ["no output and no input", "admin", exec.replace("stdout", "no"), known, 400, /at least 1 of/],
  ["a Pod on no node", "admin", exec, known, 400, /does not have a host assigned/],
  ["an unknown protocol", "admin", exec, webSocket("v9.example.org"), 400, /unable to negotiate/],
  ["another upgrade", "admin", exec, { connection: "Upgrade", upgrade: "h2c" }, 400, /unable to/],
  ["no upgrade", "admin", exec, {}, 400, /Upgrade request required/],
])("a stream with %s is answered in HTTP", async (_, user, path, headers, code, message) => {
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web" },
    spec: { containers: [{ name: "main", image: "example.org/a:1" }] },
  };
  const pods = "/api/v1/namespaces/default/pods";
  const json = { "content-type": "application/json" };
  await ask({ agent, method: "POST", path: pods, headers: json }, JSON.stringify(pod));
  const answer = await ask({ ...as(user), path, headers });
  expect(answer.code).toBe(code);
  expect(JSON.parse(answer.body)).toMatchObject({ kind: "Status", code });
  expect(answer.body).toMatch(message);
});

test("clients that do not read their watches of a large object hold it once, not each a copy", async () => {
  const send = async (method: string, target: string, body: object, type = "application/json") => {
    const headers = { "content-type": type };
    const options = { agent, method, path: target, headers };
    const { code, body: text } = await ask(options, JSON.stringify(body));
    expect(code, text).toBeLessThan(300);
  };
  const schema = {
    openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
  };
  await send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "blobs.example.com" },
    spec: {
      group: "example.com",
      scope: "Cluster",
      names: { plural: "blobs", kind: "Blob" },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  });
  const blobs = "/apis/example.com/v1/blobs";
  const metadata = { name: "large" };
  const data = "x".repeat(2_400_000);
  await send("POST", blobs, { apiVersion: "example.com/v1", kind: "Blob", metadata, data });
  const before = process.memoryUsage().rss;
  const credentials = { ca: read("ca.crt"), cert: read("admin.crt"), key: read("admin.key") };
  const sockets = await Promise.all(
    Array.from({ length: 200 }, async () => {
      const socket = connect({ host: "127.0.0.1", port: listener.port, ...credentials });
      await once(socket, "secureConnect");
      socket.write(`GET ${blobs}?watch=true HTTP/1.1\r\nhost: kubernetes\r\n\r\n`);
      await once(socket, "readable");
      return socket;
    }),
  );
  for (const change of [1, 2, 3])
    await send("PATCH", `${blobs}/large`, { change }, "application/merge-patch+json");
  await pause(300);
  const grown = (process.memoryUsage().rss - before) / 1024 / 1024;
  for (const socket of sockets) socket.destroy();
  // Two hundred copies of one version alone are 458 MB.
  expect(grown).toBeLessThan(200);
});
