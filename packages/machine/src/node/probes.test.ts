import { createServer, type RequestListener } from "node:http";
import { type AddressInfo } from "node:net";
import { OutboundGuard, type Probe, systemClock } from "@spry/kube";
import { describe, expect, onTestFinished, test } from "vitest";
import { runHook } from "./lifecycle-hooks.ts";
import { runProbe } from "./probes.ts";

/** What the container answers to each path; `/back` shows what it was asked. */
const answer: RequestListener = (request, response) => {
  const { pathname } = new URL(request.url ?? "", "http://container");
  const [, word = "", place = ""] = pathname.split("/");
  if (word === "back") {
    const { host, accept, "x-two": two, "user-agent": agent } = request.headers;
    const isAsked =
      host === "shop.example" &&
      accept === undefined &&
      two === "1, 2" &&
      agent === "kube-probe/spry";
    response.writeHead(isAsked ? 200 : 500).end();
  } else if (word === "silent") return;
  else if (word === "endless") {
    response.writeHead(200);
    const pump = () => {
      while (!response.destroyed && response.write("x".repeat(1024)));
    };
    response.on("drain", pump);
    pump();
  } else if (word === "loop") response.writeHead(302, { location: "/loop" }).end();
  else if (word === "to") response.writeHead(307, { location: `/${place}` }).end();
  else if (word === "nowhere") response.writeHead(302, { location: "http://[secret" }).end();
  else if (word === "away") response.writeHead(302, { location: "http://192.0.2.1/500" }).end();
  else response.writeHead(Number(word)).end("the answer's secret");
};

async function startContainer() {
  const server = createServer(answer);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const container = { name: "main", ports: [{ name: "http", containerPort: port }] };
  const exec = (argv: readonly string[]) =>
    Promise.resolve({ exitCode: argv[0] === "true" ? 0 : 1, output: "" });
  return { port, target: { ip: "127.0.0.1", container, exec } };
}

const get = (path: string, more: object = {}): Probe => ({
  httpGet: { path, port: "http", ...more },
});
const asked = {
  httpHeaders: [
    { name: "Host", value: "shop.example" },
    { name: "Accept", value: "" },
    { name: "X-Two", value: "1" },
    { name: "X-Two", value: "2" },
  ],
};

test.each<{ name: string; probe: Probe; success: boolean; message?: RegExp }>([
  { name: "200", probe: get("/200"), success: true },
  { name: "a path without its slash", probe: get("200"), success: true },
  { name: "304", probe: get("/304"), success: true },
  { name: "404", probe: get("/404"), success: false, message: /with statuscode: 404$/ },
  { name: "headers as they are given", probe: get("/back", asked), success: true },
  { name: "a redirect on the same host", probe: get("/to/500"), success: false, message: /500$/ },
  { name: "a redirect to another host", probe: get("/away"), success: true },
  { name: "endless redirects", probe: get("/loop"), success: false, message: /after 10 redirects/ },
  { name: "an endless body", probe: get("/endless"), success: true },
  {
    name: "no answer",
    probe: { ...get("/silent"), timeoutSeconds: 0.1 },
    success: false,
    message: /^Get "http:\/\/127.0.0.1:\d+\/silent": context deadline exceeded$/,
  },
  {
    name: "a port that has no such name",
    probe: { httpGet: { port: "admin" } },
    success: false,
    message: /^couldn't find port: admin$/,
  },
  { name: "TCP by name", probe: { tcpSocket: { port: "http" } }, success: true },
  {
    name: "TCP where nothing listens",
    probe: { tcpSocket: { port: 1 } },
    success: false,
    message: /ECONNREFUSED/,
  },
  { name: "a command", probe: { exec: { command: ["true"] } }, success: true },
  { name: "a command that fails", probe: { exec: { command: ["false"] } }, success: false },
  { name: "no handler", probe: {}, success: false, message: /none of httpGet/ },
])("a probe meets $name", async ({ probe, success, message = /^/ }) => {
  const { target } = await startContainer();
  const result = await runProbe({ timeoutSeconds: 15, ...probe }, target);
  expect(result).toEqual({ success, message: expect.stringMatching(message) as string });
  expect(result.message).not.toContain("secret");
});

test.each([
  { name: "HTTP with any status", hook: { httpGet: { path: "/500", port: "http" } } },
  { name: "sleep", hook: { sleep: { seconds: 0 } } },
  { name: "exec", hook: { exec: { command: ["true"] } } },
  {
    name: "exec that fails",
    hook: { exec: { command: ["false"] } },
    error: /command exited with 1/,
  },
  {
    name: "HTTP without an answer",
    hook: { httpGet: { port: 1 } },
    error: /Get "http:\/\/127.0.0.1:1\/": .*ECONNREFUSED/,
  },
  {
    name: "tcpSocket, which Kubernetes does not run either",
    hook: { tcpSocket: { port: "http" } },
    error: /^Cannot run handler: it has tcpSocket/,
  },
])("a lifecycle hook: $name", async ({ hook, error }) => {
  const { target } = await startContainer();
  const process = { exec: target.exec } as never;
  const done = runHook(hook, { ...target, process }, 15_000, systemClock);
  if (error) await expect(done).rejects.toThrow(error);
  else await done;
});

describe("a host that the Pod's author has chosen", () => {
  const guard = new OutboundGuard({ allowPrivate: true });
  const hosts =
    "127.0.0.1 127.9.9.9 localhost 0x7f.1 2130706433 ::ffff:127.0.0.1 0.0.0.0 169.254.169.254";
  test.each(hosts.split(" "))("is not called at %s", async (host) => {
    const { port, target: own } = await startContainer();
    const target = { ...own, ip: "10.1.2.3", guard };
    const process = { exec: target.exec } as never;
    const refused = /address [\d.:a-f]+ is (?:loopback|link-local)/;
    const result = { success: false, message: expect.stringMatching(refused) as string };
    expect(await runProbe({ httpGet: { port, host, path: "/200" } }, target)).toEqual(result);
    expect(await runProbe({ tcpSocket: { port, host } }, target)).toEqual(result);
    // The same for a port at which nothing listens.
    expect(await runProbe({ tcpSocket: { port: 1, host } }, target)).toEqual(result);
    const hook = { httpGet: { port, host, path: "/200" } };
    const done = runHook(hook, { ...target, process }, 15_000, systemClock);
    await expect(done).rejects.toThrow(refused);
  });

  test("is called where it is the Pod's own, where the Pod has the machine's network, and where the operator allows it", async () => {
    const { port, target } = await startContainer();
    const httpGet = { port, host: "127.0.0.1", path: "/200" };
    expect(await runProbe({ httpGet }, { ...target, guard })).toMatchObject({ success: true });
    const elsewhere = { ...target, ip: "10.1.2.3" };
    expect(await runProbe({ httpGet }, elsewhere)).toMatchObject({ success: true });
    const allowed = [{ host: "127.0.0.1", port }];
    const open = new OutboundGuard({ allowPrivate: true, allowed });
    expect(await runProbe({ httpGet }, { ...elsewhere, guard: open })).toMatchObject({
      success: true,
    });
  });

  test("shows nothing of where it leads", async () => {
    const { target } = await startContainer();
    const { message } = await runProbe(get("/nowhere"), target);
    expect(message).toMatch(/: failed to parse Location header$/);
  });
});
