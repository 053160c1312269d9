import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TLSSocket } from "node:tls";
import { createApiServer } from "@spry/apiserver";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { KubeClient } from "./client.ts";
import { messageOf } from "./errors.ts";
import { type HttpsTransport, httpsTransport } from "./https-transport.ts";
import { Informer } from "./informer.ts";
import { type ClusterConfig, type ExecConfig } from "./kubeconfig.ts";
import { ManualClock } from "./manual-clock.ts";
import { resources } from "./resources.ts";

/** A throw-away authority's certificates, valid for a century; its own key is gone, the others protect nothing. */
const pem = (name: string) => readFileSync(join(import.meta.dirname, "testdata", name), "utf8");

let handler: http.RequestListener;
let server: http.Server | undefined;
let directory: string;
const transports: HttpsTransport[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "transport-"));
});
afterEach(async () => {
  for (const transport of transports.splice(0)) transport.close();
  const opened = server;
  opened?.closeAllConnections();
  if (opened?.listening) await new Promise((resolve) => opened.close(resolve));
  rmSync(directory, { recursive: true });
});

async function serve(listener: http.RequestListener, tls = false): Promise<ClusterConfig> {
  handler = listener;
  const answer: http.RequestListener = (request, response) => handler(request, response);
  const options = { cert: pem("server.crt"), key: pem("server.key"), ca: pem("ca.crt") };
  const opened = tls
    ? https.createServer({ ...options, requestCert: true, rejectUnauthorized: false }, answer)
    : http.createServer(answer);
  server = opened;
  await new Promise<void>((resolve) => opened.listen(0, "127.0.0.1", resolve));
  const { port } = opened.address() as AddressInfo;
  const namespace = "default";
  if (!tls) return { server: `http://127.0.0.1:${port}`, namespace };
  return { server: `https://127.0.0.1:${port}`, namespace, certificateAuthority: pem("ca.crt") };
}

function open(config: ClusterConfig, options = {}): HttpsTransport {
  const transport = httpsTransport(config, options);
  transports.push(transport);
  return transport;
}

const get = (path = "/x", signal?: AbortSignal) =>
  new Request(`http://kubernetes.internal${path}`, signal ? { signal } : {});
const textOf = async (transport: HttpsTransport, request = get()) =>
  (await transport(request)).text();

describe("over TLS", () => {
  const whoAmI: http.RequestListener = (request, response) => {
    const { subject } = (request.socket as TLSSocket).getPeerCertificate();
    response.end(`${String(subject?.CN ?? "nobody")} of ${String(subject?.O ?? "nowhere")}`);
  };

  test("the client certificate is who we are", async () => {
    const config = await serve(whoAmI, true);
    expect(await textOf(open(config))).toBe("nobody of nowhere");
    const known = { clientCertificate: pem("client.crt"), clientKey: pem("client.key") };
    expect(await textOf(open({ ...config, ...known }))).toBe("someone of system:masters");
  });

  test("a server of another authority is refused, unless that is said not to matter", async () => {
    const { certificateAuthority: _, ...config } = await serve(whoAmI, true);
    const error = await textOf(open(config)).catch(messageOf);
    expect(error).toMatch(/calling GET 127.0.0.1:\d+\/x: self-signed/);
    expect(await textOf(open({ ...config, insecureSkipTlsVerify: true }))).toContain("nobody");
  });

  test("a server by another name is refused, unless that name is expected", async () => {
    const config = await serve(whoAmI, true);
    const wrong = open({ ...config, tlsServerName: "other.test" });
    await expect(textOf(wrong).catch(messageOf)).resolves.toContain("other.test");
    expect(await textOf(open({ ...config, tlsServerName: "kubernetes.test" }))).toContain("nobody");
  });
});

describe("a request", () => {
  test("carries method, path, body and headers, below the server's own path", async () => {
    const config = await serve((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { method, url, headers } = request;
        const body = Buffer.concat(chunks).toString();
        response
          .setHeader("x-many", ["a", "b"])
          .end(`${method} ${url} ${String(headers["x-a"])} ${body}`);
      });
    });
    const transport = open({ ...config, server: `${config.server}/clusters/one` });
    const init = { method: "PUT", body: "data", headers: { "x-a": "1" } };
    const response = await transport(new Request("http://kubernetes.internal/api?x=%2F", init));
    expect(await response.text()).toBe("PUT /clusters/one/api?x=%2F 1 data");
    expect(response.headers.get("x-many")).toBe("a, b");
  });

  test.each([
    ["a token", { token: "t" }, { authorization: "Bearer t" }],
    ["a password", { username: "u", password: "p" }, { authorization: "Basic dTpw" }],
    [
      "another user's rights",
      { impersonate: { user: "jane", groups: ["a", "b"], extra: { "x/y": ["z"] } } },
      { "impersonate-user": "jane", "impersonate-group": "a, b", "impersonate-extra-x%2fy": "z" },
    ],
  ])("shows %s", async (_, fields, headers) => {
    const config = await serve((request, response) =>
      response.end(JSON.stringify(request.headers)),
    );
    const seen = JSON.parse(await textOf(open({ ...config, ...fields }))) as object;
    expect(seen).toMatchObject(headers);
  });

  test("uses connections again", async () => {
    const ports = new Set<number | undefined>();
    const config = await serve((request, response) => {
      ports.add(request.socket.remotePort);
      response.end();
    });
    const transport = open(config);
    for (let i = 0; i < 5; i++) await textOf(transport);
    expect(ports.size).toBe(1);
  });

  test("without an answer is given up", async () => {
    const config = await serve(() => {});
    const transport = open(config, { headersTimeoutMs: 30 });
    await expect(textOf(transport).catch(messageOf)).resolves.toContain("no response within 30 ms");
  });

  test("is ended by its signal, before the answer and within it", async () => {
    const closed: (() => void)[] = [];
    let arrived = () => {};
    const config = await serve((request, response) => {
      response.on("close", () => closed.shift()?.());
      if (request.url === "/stream") response.write("first");
      arrived();
    });
    const transport = open(config);
    for (const path of ["/silent", "/stream"]) {
      const stop = new AbortController();
      const gone = new Promise<void>((resolve) => closed.push(resolve));
      const enough = () => stop.abort(new Error("enough"));
      arrived = path === "/silent" ? enough : () => {};
      const answer = transport(get(path, stop.signal)).then((response) => {
        const text = response.text();
        enough();
        return text;
      });
      await expect(answer).rejects.toThrow();
      await gone;
    }
    const late = AbortSignal.abort(new Error("late"));
    await expect(transport(get("/x", late))).rejects.toThrow("late");
  });

  test("of a watch is answered line by line", async () => {
    const lines = ["a", "b"].map((name) =>
      JSON.stringify({ type: "ADDED", object: { metadata: { name } } }),
    );
    const next: (() => void)[] = [];
    const config = await serve((_, response) => {
      response.write(`${lines[0]}\n`);
      next.push(() => response.write(`${lines[1]}\n`));
    });
    const stop = new AbortController();
    const seen: (string | undefined)[] = [];
    const events = new KubeClient(open(config)).watch(resources.pods, { signal: stop.signal });
    for await (const event of events) {
      seen.push(event.object.metadata.name);
      if (seen.length === 2) stop.abort();
      else next[0]?.();
    }
    expect(seen).toEqual(["a", "b"]);
  });
});

test("a token file is read again after a minute, and at once when its token is refused", async () => {
  const clock = new ManualClock();
  const tokenFile = join(directory, "token");
  let valid = "one";
  const config = await serve((request, response) => {
    const isValid = request.headers.authorization === `Bearer ${valid}`;
    response.writeHead(isValid ? 200 : 401).end(request.headers.authorization);
  });
  const transport = open({ ...config, tokenFile }, { clock });
  writeFileSync(tokenFile, "one\n");
  expect(await textOf(transport)).toBe("Bearer one");
  writeFileSync(tokenFile, "two");
  expect(await textOf(transport)).toBe("Bearer one");
  valid = "two";
  expect(await textOf(transport)).toBe("Bearer two");
  writeFileSync(tokenFile, "three");
  valid = "three";
  await clock.advance(61_000);
  expect(await textOf(transport)).toBe("Bearer three");
  valid = "never";
  expect((await transport(get())).status).toBe(401);
});

describe("a credential plugin", () => {
  const apiVersion = "client.authentication.k8s.io/v1";
  /** A plugin that is a shell script; `$n` in it counts its runs. */
  function plugin(script: string, more: Partial<ExecConfig> = {}): ExecConfig {
    const path = join(directory, "plugin");
    const count = `echo x >> ${directory}/runs; n=$(wc -l < ${directory}/runs)`;
    writeFileSync(path, `#!/bin/sh\n${count}\n${script}\n`);
    chmodSync(path, 0o755);
    return {
      apiVersion,
      command: "./plugin",
      args: [],
      env: {},
      provideClusterInfo: false,
      interactiveMode: "IfAvailable",
      directory,
      ...more,
    };
  }
  const credential = (status: string) =>
    `cat <<END\n{"kind":"ExecCredential","apiVersion":"${apiVersion}","status":{${status}}}\nEND`;
  const echo: http.RequestListener = (request, response) =>
    void response.end(request.headers.authorization);

  test("runs once until its credential ends", async () => {
    const clock = new ManualClock();
    const config = await serve(echo);
    const until = new Date(clock.now() + 60_000).toISOString();
    const exec = plugin(credential(`"token":"t$n","expirationTimestamp":"${until}"`));
    const transport = open({ ...config, exec }, { clock });
    const all = await Promise.all([textOf(transport), textOf(transport), textOf(transport)]);
    expect(all).toEqual(["Bearer t1", "Bearer t1", "Bearer t1"]);
    await clock.advance(51_000);
    expect(await textOf(transport)).toBe("Bearer t2");
  });

  test("runs again when its credential is refused", async () => {
    const config = await serve((request, response) => {
      const ok = request.headers.authorization === "Bearer t2";
      response.writeHead(ok ? 200 : 401).end(request.headers.authorization);
    });
    const exec = plugin(credential('"token":"t$n"'));
    expect(await textOf(open({ ...config, exec }))).toBe("Bearer t2");
  });

  test("gets the cluster's data when it asks for it", async () => {
    const config = await serve(echo);
    const script = `info=$(printf %s "$KUBERNETES_EXEC_INFO" | base64 | tr -d '\\n')
echo "{\\"kind\\":\\"ExecCredential\\",\\"apiVersion\\":\\"${apiVersion}\\",\\"status\\":{\\"token\\":\\"$info\\"}}"`;
    const exec = plugin(script, { provideClusterInfo: true, env: { X: "1" } });
    const header = await textOf(open({ ...config, exec }));
    const info = Buffer.from(header.replace("Bearer ", ""), "base64").toString();
    expect(JSON.parse(info)).toEqual({
      kind: "ExecCredential",
      apiVersion,
      spec: { interactive: false, cluster: { server: config.server } },
    });
  });

  test.each([
    ["fails", "echo no luck >&2; exit 3", {}, "it failed with 3: no luck"],
    ["prints nonsense", "echo hunter2", {}, "it did not print JSON"],
    ["prints something else", "echo '{}'", {}, "did not print an ExecCredential"],
    ["prints nothing of use", credential(""), {}, "neither a token nor a client certificate"],
    [
      "is missing",
      "",
      { command: "spry-none", installHint: "install it" },
      "not found; install it",
    ],
    ["wants to ask", "", { interactiveMode: "Always" }, "it needs a terminal"],
  ] as const)("that %s says so", async (_, script, more, message) => {
    const config = await serve(echo);
    const failed = textOf(open({ ...config, exec: plugin(script, more) })).catch(messageOf);
    await expect(failed).resolves.toContain(message);
    await expect(failed).resolves.not.toContain("hunter2");
  });
});

test("an informer follows an API server over TLS, also through its restart", async () => {
  const dataDir = join(directory, "state");
  const tls = { cert: pem("server.crt"), key: pem("server.key"), clientCa: pem("ca.crt") };
  let api = await createApiServer({ dataDir });
  let listening = await api.listen({ host: "127.0.0.1", port: 0, ...tls });
  const { port } = listening;
  const config = {
    server: `https://127.0.0.1:${port}`,
    namespace: "default",
    certificateAuthority: pem("ca.crt"),
    clientCertificate: pem("client.crt"),
    clientKey: pem("client.key"),
  };
  const write = (name: string) =>
    new KubeClient(api.transport()).create(resources.configMaps, {
      metadata: { namespace: "default", name },
    });
  const informer = new Informer(new KubeClient(open(config)), resources.configMaps, {
    namespace: "default",
    maxRetryMs: 100,
  });
  const stop = new AbortController();
  const ended = informer.run(stop.signal);
  await informer.synced;
  await write("one");
  await expect.poll(() => informer.get("default/one")).toBeDefined();
  await listening.close();
  await api.close();
  api = await createApiServer({ dataDir });
  await write("two");
  listening = await api.listen({ host: "127.0.0.1", port, ...tls });
  await expect.poll(() => informer.get("default/two")).toBeDefined();
  stop.abort();
  await ended;
  await listening.close();
  await api.close();
});
