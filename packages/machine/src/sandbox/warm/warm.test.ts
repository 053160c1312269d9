import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually, temporaryDirectory } from "../../testing.ts";
import { findConfinement } from "../confinement/trial.ts";
import { openProcessSandbox } from "../process-sandbox.ts";
import { type ProcessContainer } from "../process-container.ts";
import { findByEnvironment, listProcesses } from "../processes.ts";
import { type ContainerSpec, type LocalImage, type PodSandbox, type Sandbox } from "../sandbox.ts";
import { waitForFunction } from "./testing.ts";

const scratch = mkdtempSync(path.join(tmpdir(), "spry-warm-"));
const why = await findConfinement(scratch);
rmSync(scratch, { recursive: true });
if (typeof why === "string") test.skip(`warm processes (skipped: ${why})`);

/** It answers with what its Function returns. */
const runtime = `${waitForFunction}delete process.env.SPRY_READY_FD;
const { main } = require(directory + "/handler.js");
const server = require("node:http").createServer((request, response) => response.end(JSON.stringify(main(request.url))));
server.listen(8080, process.env.SERVER_HOST, () => (writeSync(3, "ready\\n"), closeSync(3)));
`;

function imageOf(handler: string, program = runtime): LocalImage {
  const rootDir = temporaryDirectory();
  chmodSync(rootDir, 0o755);
  mkdirSync(path.join(rootDir, "usr/src/app/function"), { recursive: true });
  writeFileSync(path.join(rootDir, "usr/src/app/server.cjs"), program);
  writeFileSync(path.join(rootDir, "usr/src/app/function/handler.js"), handler);
  const label = `node@${process.versions.node.split(".")[0]}`;
  return {
    digest: `sha256:${path.basename(rootDir)}`,
    rootDir,
    config: {
      Entrypoint: ["node", "/usr/src/app/server.cjs"],
      WorkingDir: "/usr/src/app/function",
      Labels: { "io.spry.interpreter": label },
    },
  };
}

async function openSandbox(
  max = 1,
  dataDir = temporaryDirectory(),
  isShipped = () => Promise.resolve(true),
) {
  const warm = { max, isShipped };
  const sandbox = await openProcessSandbox({ dataDir, warm });
  const recovered = await sandbox.recover();
  onTestFinished(() => sandbox.close());
  return { dataDir, sandbox, recovered };
}

let pods = 0;

async function startPod(
  sandbox: Sandbox,
  image: LocalImage,
  more: Partial<ContainerSpec> = {},
): Promise<{ place: PodSandbox; container: ProcessContainer; spec: ContainerSpec }> {
  const uid = `11111111-2222-3333-4444-${String(++pods).padStart(12, "0")}`;
  const place = await sandbox.openPod({
    uid,
    namespace: "default",
    name: `p${pods}`,
    expected: { image },
  });
  onTestFinished(() => place.close());
  const dir = path.join(place.dir, "containers", "function");
  mkdirSync(dir, { recursive: true });
  writeFileSync(path.join(dir, "termination-log"), "");
  const spec: ContainerSpec = {
    name: "function",
    run: 0,
    image,
    argv: image.config.Entrypoint ?? [],
    env: {},
    mounts: [],
    ports: [8080],
    logFile: path.join(dir, "0.log"),
    terminationLog: path.join(dir, "termination-log"),
    keepExitCode: false,
    hostName: `host-${pods}`,
    ...more,
  };
  const container = (await place.start(spec)) as ProcessContainer;
  await container.ready;
  return { place, container, spec };
}

function call(ip: string, at = "/"): Promise<unknown> {
  return new Promise((resolve, reject) => {
    get(`http://${ip}:8080${at}`, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () => resolve(JSON.parse(text)));
    }).on("error", reject);
  });
}

/** One waits: the first start was an ordinary one. */
async function warmedUp(sandbox: Sandbox, image: LocalImage, more: Partial<ContainerSpec> = {}) {
  const first = await startPod(sandbox, image, more);
  await eventually(() => expect(sandbox.warmFigures?.()?.waiting).toBe(1));
  return first;
}

const report = `const fs = require("node:fs");
exports.main = () => ({
  env: { ...process.env }, cwd: process.cwd(), uid: process.getuid(), gid: process.getgid(), host: require("node:os").hostname(),
  mounts: fs.readFileSync("/proc/self/mountinfo", "utf8").split("\\n").map((line) => line.split(" ")[4]).filter(Boolean).sort(),
  processes: fs.readdirSync("/proc").filter((name) => /^\\d+$/.test(name)).length,
  descriptors: fs.readdirSync("/proc/self/fd").length,
  root: fs.readdirSync("/").sort(),
  limits: fs.readFileSync("/proc/self/limits", "utf8"),
  status: fs.readFileSync("/proc/self/status", "utf8").split("\\n").filter((line) => /^(Cap|NoNewPrivs|Groups|Seccomp)/.test(line)),
});`;

describe.skipIf(typeof why === "string")("a warm process", () => {
  test("becomes the container of a Pod, which has all that a cold one has, and nothing else", async () => {
    const { sandbox } = await openSandbox();
    const image = imageOf(report);
    const env = { SECRET: "s3cret", NODE_OPTIONS: "--max-old-space-size=64" };
    const cold = await warmedUp(sandbox, image, { env });
    const seenCold = (await call(cold.place.ip)) as Record<string, unknown>;
    const warm = await startPod(sandbox, image, { env });
    const seenWarm = (await call(warm.place.ip)) as Record<string, unknown>;
    expect(sandbox.warmFigures?.()).toMatchObject({ used: 1, missed: 1 });
    // What is the Pod's own is different in both, and nothing else is.
    const [{ mounts: before, ...coldRest }, { mounts: after, ...warmRest }] = [
      general(seenCold, cold),
      general(seenWarm, warm),
    ];
    expect(warmRest).toEqual(coldRest);
    // The copy of the runtime is all that it sees besides.
    const more = after.filter((each) => !before.includes(each));
    expect(more).toEqual([expect.stringMatching(/\/warm\/runtimes\/[0-9a-f]{64}$/)]);
    expect(before.filter((each) => !after.includes(each))).toEqual([]);
    // Nor is there more beyond its root directory: the machine's tree is gone.
    const [ofCold, ofWarm] = [cold, warm].map(({ container }) => namespaceMounts(container.pid));
    expect(ofWarm?.filter((at) => !at.startsWith("/root") && at !== "/")).toEqual([]);
    expect(ofWarm).toHaveLength((ofCold?.length ?? 0) + more.length);
  });

  test("has logs, commands, and an end as any container has", async () => {
    const { sandbox } = await openSandbox();
    const image = imageOf(
      `exports.main = () => (console.log("called"), console.error("twice"), 1);
       process.on("SIGTERM", () => { require("node:fs").writeFileSync(process.env.SPRY_TERMINATION_LOG, "over"); process.exit(7); });`,
    );
    await warmedUp(sandbox, image);
    const { place, container, spec } = await startPod(sandbox, image, { env: { GREETING: "hi" } });
    expect(sandbox.warmFigures?.()).toMatchObject({ used: 1 });
    await call(place.ip);
    expect(readFileSync(spec.logFile, "utf8")).toBe("called\ntwice\n");
    const argv = ["sh", "-c", "echo $GREETING; pwd; hostname; echo $SPRY_WARM_FD"];
    const { output } = await container.exec(argv, { timeoutMs: 5000 });
    const hostName = process.getuid?.() === 0 ? spec.hostName : expect.any(String);
    expect(output.split("\n")).toEqual([
      "hi",
      `${image.rootDir}/usr/src/app/function`,
      hostName,
      "",
      "",
    ]);
    const [usage] = (await sandbox.usage()).filter(
      ({ startedAt }) => startedAt === container.startedAt,
    );
    expect(usage?.memoryBytes).toBeGreaterThan(20e6);
    container.kill("SIGTERM");
    expect(await container.exited).toMatchObject({ exitCode: 7 });
    expect(readFileSync(spec.terminationLog, "utf8")).toBe("over");
  });

  test("is one Pod's, once: the next run of its container, and another Pod, are started as ever", async () => {
    const { sandbox } = await openSandbox();
    const image = imageOf(`exports.main = () => [process.pid, process.ppid, process.argv[1]];`);
    await warmedUp(sandbox, image);
    // Two at once: there was one process.
    const both = await Promise.all([startPod(sandbox, image), startPod(sandbox, image)]);
    const programs = await Promise.all(both.map(({ place }) => call(place.ip)));
    const isCopy = (program: unknown) =>
      String((program as string[])[2]).includes("/warm/runtimes/");
    expect(programs.filter(isCopy)).toHaveLength(1);
    const warm = both[programs.findIndex(isCopy)];
    if (!warm) throw new Error("none was warm");
    warm.container.kill("SIGKILL");
    expect(await warm.container.exited).toMatchObject({ exitCode: 137 });
    const again = await warm.place.start({
      ...warm.spec,
      run: 1,
      logFile: `${warm.spec.logFile}.1`,
    });
    await again.ready;
    expect(isCopy(await call(warm.place.ip))).toBe(false);
    expect(await livingWith(warm.container.pid)).toBe(false);
  });

  test("is for starts with the same options alone", async () => {
    const { sandbox } = await openSandbox();
    const image = imageOf(`exports.main = () => process.argv[1];`);
    await warmedUp(sandbox, image);
    const env = { NODE_OPTIONS: "--max-old-space-size=65" };
    await startPod(sandbox, image, { env });
    // The one that had waited was started with another heap; when the next one waits is not known here.
    expect(sandbox.warmFigures?.()).toMatchObject({ used: 0, missed: 2 });
    await eventually(async () => {
      await startPod(sandbox, image, { env });
      expect(sandbox.warmFigures?.()).toMatchObject({ used: 1 });
    });
  });

  test("is any Function's with the same runtime, by the content of its files", async () => {
    const { sandbox } = await openSandbox();
    await warmedUp(sandbox, imageOf(`exports.main = () => 1;`));
    const other = imageOf(`exports.main = () => 2;`, `${runtime}\n// another runtime`);
    await startPod(sandbox, other);
    const same = imageOf(`exports.main = () => 3;`);
    // Its runtime is looked at when it starts for the first time.
    await startPod(sandbox, same);
    expect(sandbox.warmFigures?.()).toMatchObject({ used: 0, missed: 3 });
    await eventually(async () => {
      const { place } = await startPod(sandbox, same);
      expect(await call(place.ip)).toBe(3);
      expect(sandbox.warmFigures?.()).toMatchObject({ used: 1 });
    });
  });

  test("never waits with options that run code of a Function", async () => {
    const { sandbox, dataDir } = await openSandbox();
    const image = imageOf(`exports.main = () => 1;`);
    const options = ["--import=data:text/javascript,1", "--require fs", "--inspect=127.0.0.1:0"];
    for (const NODE_OPTIONS of options)
      await startPod(sandbox, image, { env: { NODE_OPTIONS } }).then(({ place }) => place.close());
    await startPod(sandbox, image, { env: { LD_PRELOAD: "" } });
    expect(sandbox.warmFigures?.()).toEqual({ max: 1, waiting: 0, used: 0, missed: 0 });
    expect(existsSync(path.join(dataDir, "jails"))).toBe(false);
  });

  test("never waits with a runtime that the platform has not made: it would run outside of any Pod", async () => {
    const asked = Promise.withResolvers<void>();
    const isShipped = () => {
      asked.resolve();
      return Promise.resolve(false);
    };
    const { sandbox, dataDir } = await openSandbox(1, temporaryDirectory(), isShipped);
    await startPod(sandbox, imageOf(`exports.main = () => 1;`));
    await asked.promise;
    await sandbox.close();
    expect(sandbox.warmFigures?.()).toMatchObject({ waiting: 0, used: 0 });
    expect(readdirSync(path.join(dataDir, "warm/runtimes"))).toEqual([]);
  });

  test("ends with the platform; one that is a Pod's outlives it, and the next platform takes it over", async () => {
    const { sandbox, dataDir } = await openSandbox();
    const image = imageOf(`exports.main = () => process.pid;`);
    await warmedUp(sandbox, image);
    const { container, place } = await startPod(sandbox, image);
    await eventually(() => expect(sandbox.warmFigures?.()?.waiting).toBe(1));
    expect(await waitingIn(dataDir)).toHaveLength(2);
    await sandbox.close();
    const next = await openSandbox(1, dataDir);
    // Of those started for waiting there is the one that became a container.
    expect(await waitingIn(dataDir)).toHaveLength(1);
    expect(next.recovered.map(({ sandbox: { ip } }) => ip)).toContain(place.ip);
    const adopted = next.recovered.find(({ sandbox: { ip } }) => ip === place.ip);
    expect(await call(place.ip)).toEqual(expect.any(Number));
    const { output } =
      (await adopted?.containers[0]?.container.exec(["pwd"], { timeoutMs: 5000 })) ?? {};
    expect(output).toBe(`${image.rootDir}/usr/src/app/function\n`);
    expect(readdirSync(path.join(dataDir, "warm", "runtimes"))).toHaveLength(1);
    await adopted?.sandbox.close();
    expect(await waitingIn(dataDir)).toHaveLength(0);
    await container.exited;
  });

  test("none waits where none may", async () => {
    const { sandbox } = await openSandbox(0);
    const image = imageOf(`exports.main = () => 1;`);
    await startPod(sandbox, image);
    expect(sandbox.warmFigures?.()).toBeUndefined();
  });
});

/** All that is mounted in a container's mount namespace, by its helper's root directory. */
function namespaceMounts(helper: number): string[] {
  const lines = readFileSync(`/proc/${helper}/mountinfo`, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => line.split(" ")[4] ?? "");
}

interface Report extends Record<string, unknown> {
  mounts: string[];
}

/** Without what is a Pod's own: its directory, address, host name and user. */
function general(
  seen: unknown,
  { place, spec }: { place: PodSandbox; spec: ContainerSpec },
): Report {
  const { uid, gid } = place.owner ?? { uid: process.getuid?.(), gid: process.getgid?.() };
  const text = JSON.stringify(seen)
    .replaceAll(place.dir, "<pod>")
    .replaceAll(place.ip, "<ip>")
    .replaceAll(spec.hostName, "<host>")
    .replace(`"uid":${uid},"gid":${gid}`, `"user":"own"`);
  return JSON.parse(text) as Report;
}

/** Helpers of processes that wait, or have waited. */
async function waitingIn(dataDir: string): Promise<string[]> {
  const found = await findByEnvironment(`SPRY_ROOT=${dataDir}/pods/warm-`);
  return [...new Set(found.map(({ value }) => value))];
}

async function livingWith(pid: number): Promise<boolean> {
  return (await listProcesses()).some(({ session, state }) => session === pid && state !== "Z");
}
