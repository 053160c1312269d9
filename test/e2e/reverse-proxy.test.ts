/** The reverse proxies of docs/operating.md, as they stand there but for names and ports, in front of a platform. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { freePort } from "@spry/test-kit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { call, callUntil } from "../support/calls.ts";
import { blocksOf } from "../support/document-blocks.ts";
import { functionManifest, Platform, root } from "../support/platform.ts";

const blocks = blocksOf(readFileSync(path.join(root, "docs/operating.md"), "utf8"));
const blockOf = (language: string) => blocks.find((each) => each.language === language)?.text ?? "";
const own = "spry.example.com";
const fn = "hello.default.apps.example.com";

const platform = new Platform({ args: ["--no-example", `--dashboard-host=${own}`] });
const source = `module.exports = {
  main: (event) => "hello " + event.extensions.request.headers.host,
  websocket(socket) { socket.onmessage = ({ data }) => socket.send("got " + data); },
};`;

beforeAll(async () => {
  await platform.start();
  await platform.k("apply -f -", functionManifest("hello", source));
  await platform.callUntil("hello.default", ({ status }) => status === 200);
});
afterAll(() => platform.remove());

interface Proxy {
  program: string;
  /** Writes its configuration, and returns what it is started with. */
  prepare: (port: number, dir: string) => string[];
}

const withPorts = (text: string) =>
  text
    .replaceAll(":8080", `:${platform.gateway.port}`)
    .replaceAll(":8081", `:${new URL(platform.dashboard).port}`);

const proxies: Proxy[] = [
  {
    program: "nginx",
    prepare: (port, dir) => {
      const servers = withPorts(blockOf("nginx")).replaceAll(
        "listen 80;",
        `listen 127.0.0.1:${port};`,
      );
      const file = path.join(dir, "nginx.conf");
      const scratch = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
        (name) => `${name}_temp_path ${dir}/${name};`,
      );
      writeFileSync(
        file,
        `daemon off; pid ${dir}/pid; error_log stderr; events {} http { access_log off; ${scratch.join(" ")} ${servers} }`,
      );
      return ["-c", file, "-e", "stderr", "-p", dir];
    },
  },
  {
    program: "caddy",
    prepare: (port, dir) => {
      const file = path.join(dir, "Caddyfile");
      const sites = withPorts(blockOf("caddyfile")).replaceAll(
        /^(http:\/\/\S+) \{$/gm,
        `$1:${port} {`,
      );
      writeFileSync(file, `{\n\tadmin off\n}\n${sites}`);
      return ["run", "--config", file, "--adapter", "caddyfile"];
    },
  },
];

describe.each(proxies)("behind $program", ({ program, prepare }) => {
  const isThere = !spawnSync(program, ["-v"]).error;
  const row = isThere ? test : test.skip;
  const suffix = isThere ? "" : ` (skipped: ${program} is not installed)`;
  let child: ChildProcess | undefined;
  let port = 0;

  beforeAll(async () => {
    if (!isThere) return;
    port = await freePort();
    const dir = mkdtempSync(path.join(tmpdir(), "proxy-"));
    child = spawn(program, prepare(port, dir), {
      stdio: "ignore",
      env: { ...process.env, HOME: dir, XDG_DATA_HOME: dir, XDG_CONFIG_HOME: dir },
    });
    await callUntil(
      () => call(port, fn).catch(() => ({ status: 0, headers: {}, body: "" })),
      ({ status }) => status !== 0,
    );
  });
  afterAll(async () => {
    if (!child || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await ended;
  });

  row(
    `a Function answers at the name of the domain, with a body and by WebSocket${suffix}`,
    async () => {
      const body = "x".repeat(300_000);
      const answer = await call(port, fn, { body, headers: { "content-type": "text/plain" } });
      expect(answer).toMatchObject({ status: 200, body: "hello hello.default.localhost" });
      const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { host: fn } });
      await once(socket, "open");
      socket.send("a word");
      const [data] = await once(socket, "message");
      expect(String(data)).toBe("got a word");
      socket.terminate();
    },
  );

  row(
    `the dashboard is served at its name, with its socket, and at no other${suffix}`,
    async () => {
      const page = await call(port, own);
      expect(page.status).toBe(200);
      expect(page.body).toContain("<html");
      const origin = `http://${own}`;
      const socket = new WebSocket(`ws://127.0.0.1:${port}/socket`, {
        headers: { host: own },
        origin,
      });
      await once(socket, "open");
      socket.terminate();
      const direct = await call(new URL(platform.dashboard).port, "other.example.com");
      expect(direct.status).toBe(403);
      expect(direct.body).toContain("spry up --dashboard-host NAME");
    },
  );
});
