/** The gateway's process outlives its platform; none of them may be left behind unseen. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type ApiServer, createApiServer } from "@spry/apiserver";
import {
  identify,
  KubeClient,
  lifeOf,
  type ProcessIdentity,
  signalIdentity,
  silentLogger,
} from "@spry/kube";
import { afterAll, beforeAll, expect, test } from "vitest";
import { gatewayProgram } from "../programs.ts";
import { ensureCertificates } from "./certificates.ts";
import { readJson } from "./data-dir.ts";
import { endGateway, startGatewayProcess } from "./gateway-process.ts";
import { kubeconfigFor } from "./kubeconfig.ts";
import { applySystemObjects } from "./system-objects.ts";
import {
  countsTokenFile,
  countsTokenVariable,
  ensureCountsToken,
  ensureMetricsToken,
} from "./token-files.ts";

let dir = "";
let api: ApiServer;
let kubeconfig = "";
beforeAll(async () => {
  dir = mkdtempSync(path.join(tmpdir(), "gateway-process-"));
  api = await createApiServer({ dataDir: ":memory:" });
  const { ca, apiServer, gateway } = await ensureCertificates(dir);
  const { port } = await api.listen({ host: "127.0.0.1", port: 0, ...apiServer, clientCa: ca });
  await applySystemObjects(new KubeClient(api.transport()));
  kubeconfig = path.join(dir, "gateway.kubeconfig");
  const server = `https://127.0.0.1:${port}`;
  writeFileSync(kubeconfig, kubeconfigFor({ server, ca, user: "gateway", client: gateway }));
});
afterAll(async () => {
  await api.close();
  rmSync(dir, { recursive: true });
});

const start = (config: string, onError: (message: string) => void = () => {}) =>
  startGatewayProcess({
    dataDir: dir,
    logFile: path.join(dir, "gateway.log"),
    kubeconfig: config,
    countsTokenFile: ensureCountsToken(dir).file,
    metricsTokenFile: ensureMetricsToken(dir).file,
    adminPort: 0,
    host: "127.0.0.1",
    port: 0,
    callerAddresses: ["127.96.0.0/12"],
    allowedLoopback: [],
    fingerprint: "one",
    log: { ...silentLogger, error: (_fields: object, message: string) => onError(message) },
  });
const isAlive = (identity: ProcessIdentity) => lifeOf(identity) === "alive";
const recorded = () => readJson<ProcessIdentity & { port: number }>(path.join(dir, "gateway.json"));

test("a gateway is written down long before it is ready, and ended by what is written", async () => {
  const unreachable = path.join(dir, "nowhere.kubeconfig");
  const { ca, gateway } = await ensureCertificates(dir);
  // Nothing listens there: it never becomes ready.
  const server = "https://127.0.0.1:1";
  writeFileSync(unreachable, kubeconfigFor({ server, ca, user: "gateway", client: gateway }));
  const starting = start(unreachable).catch((error: Error) => error.message);
  await expect.poll(recorded).toMatchObject({ port: 0 });
  const orphan = recorded();
  expect(isAlive(orphan!)).toBe(true);
  // What `spry down` does, and each start whose gateway does not fit.
  await endGateway(dir);
  expect(isAlive(orphan!)).toBe(false);
  expect(await starting).toMatch(/the gateway did not start/);
});

test("one that never became ready is replaced by the next start", async () => {
  const abandoned = spawn(process.execPath, ["-e", "setTimeout(() => {}, 60000)"]);
  const record = { ...identify(abandoned.pid ?? 0), port: 0, adminPort: 0, fingerprint: "one" };
  writeFileSync(path.join(dir, "gateway.json"), JSON.stringify(record));
  const gateway = await start(kubeconfig);
  expect(isAlive(record)).toBe(false);
  expect(recorded()?.port).toBe(gateway.port);
  const { file, token } = ensureCountsToken(dir);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const url = `http://127.0.0.1:${gateway.adminPort}/counts`;
  expect((await fetch(url)).status).toBe(401);
  const counts = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  expect(counts.status).toBe(200);
  await counts.body?.cancel();
  await gateway.stop();
});

const left: [what: string, state: () => unknown][] = [
  ...[0, -0, 1, -1, 2 ** 31, 1.5, NaN, "12", null].map((pid): [string, () => unknown] => [
    `the number ${JSON.stringify(pid)}`,
    () => ({ ...identify(process.pid), pid, port: 1, adminPort: 1 }),
  ]),
  ["this process", () => identify(process.pid)],
  ["its parent", () => identify(process.ppid)],
  ["a process without its start", () => ({ pid: process.ppid })],
  ["a process of another boot", () => ({ ...identify(process.ppid), boot: "another" })],
  ["ports that are none", () => ({ pid: 4_000_000, startTime: "1", port: "x", adminPort: -1 })],
  ["null", () => null],
  ["a list", () => [[]]],
];

test.each(left)("a state file that names %s ends nothing, and no start", async (_what, state) => {
  writeFileSync(path.join(dir, "gateway.json"), JSON.stringify(state()));
  // A signal to the group of this process would end the tests.
  await endGateway(dir);
});

test("a gateway starts next to a state file that is cut off", async () => {
  writeFileSync(path.join(dir, "gateway.json"), '{"pid":0,"finger');
  const gateway = await start(kubeconfig);
  expect(recorded()).toMatchObject({ pid: gateway.pid, port: gateway.port });
  await gateway.stop();
});

test("a gateway whose state file is lost is found, and ended by the next start", async () => {
  const env = { [countsTokenVariable]: countsTokenFile(dir) };
  const other = { [countsTokenVariable]: `${countsTokenFile(dir)}-of-another` };
  const wait = ["-e", "console.log(1); setTimeout(() => {}, 60000)"];
  const [lost, foreign] = [env, other].map((each) => spawn(process.execPath, wait, { env: each }));
  for (const each of [lost, foreign]) await once(each!.stdout, "data");
  writeFileSync(path.join(dir, "gateway.json"), "");
  const gateway = await start(kubeconfig);
  expect([lost?.signalCode, foreign?.signalCode]).toEqual(["SIGTERM", null]);
  foreign?.kill("SIGKILL");
  const identity = identify(gateway.pid);
  await gateway.stop();
  expect(isAlive(identity)).toBe(false);
});

test("one that ends, and cannot be started for a while, is started once it can", async () => {
  const log: string[] = [];
  const gateway = await start(kubeconfig, (message) => log.push(message));
  const { pid, port } = gateway;
  // Its log is opened before it is started: that fails as a start without descriptors does.
  rmSync(path.join(dir, "gateway.log"));
  mkdirSync(path.join(dir, "gateway.log"));
  signalIdentity(identify(pid), "SIGKILL");
  await expect
    .poll(() => log, { timeout: 20_000 })
    .toContainEqual(expect.stringContaining("restarting the gateway failed"));
  rmSync(path.join(dir, "gateway.log"), { recursive: true });
  await expect.poll(() => gateway.pid !== pid, { timeout: 30_000 }).toBe(true);
  expect(recorded()).toMatchObject({ pid: gateway.pid, port });
  expect((await fetch(`http://127.0.0.1:${gateway.adminPort}/healthz`)).status).toBe(200);
  const identity = identify(gateway.pid);
  await gateway.stop();
  expect(isAlive(identity)).toBe(false);
});

test("one whose platform has ended before it could be written down ends by itself", async () => {
  const args = JSON.stringify([gatewayProgram(), kubeconfig, "127.0.0.1", "0"]);
  // Spawned as the platform does it, by a process that ends at once.
  const parent = spawn(process.execPath, [
    "-e",
    `const { spawn } = require("node:child_process");
     const stdio = ["ignore", "ignore", "ignore", "pipe"];
     console.log(spawn(process.execPath, ${args}, { detached: true, stdio }).pid);
     process.exit();`,
  ]);
  const pid = await new Promise<number>((resolve) =>
    parent.stdout.once("data", (text: Buffer) => resolve(Number(text.toString()))),
  );
  const orphan = identify(pid);
  await expect.poll(() => isAlive(orphan), { timeout: 10_000 }).toBe(false);
});
