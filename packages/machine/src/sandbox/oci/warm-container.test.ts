import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../../testing.ts";
import { type ContainerSpec, type LocalImage, type PodSandbox, type Sandbox } from "../sandbox.ts";
import { waitForFunction } from "../warm/testing.ts";
import { exitFile } from "../records.ts";
import { type OciContainer } from "./oci-container.ts";
import { openOciSandbox } from "./oci-sandbox.ts";
import { imageWith, leftovers, mebibyte, restricted, specFor, textFrom, why } from "./testing.ts";

/** It answers with what its Function returns. */
const runtime = `${waitForFunction}const wasWarm = process.env.SPRY_READY_FD && require("node:fs").readFileSync("/proc/self/environ", "latin1").includes("SPRY_WARM_FD");
globalThis.wasWarm = wasWarm;
const { main } = require(directory + "/handler.js");
const server = require("node:http").createServer((request, response) => response.end(JSON.stringify(main(request.url))));
server.listen(8080, () => (writeSync(3, "ready\\n"), closeSync(3)));
`;

let images = 0;

function imageOf(handler: string, more: Record<string, string> = {}): LocalImage {
  const files = {
    "usr/src/app/server.cjs": runtime,
    "usr/src/app/function/handler.js": handler,
    ...more,
  };
  const config = {
    Entrypoint: ["node", "/usr/src/app/server.cjs"],
    WorkingDir: "/usr/src/app/function",
  };
  const image = imageWith(files, {});
  Object.assign(image.config, config);
  return { ...image, digest: `sha256:warm-${++images}` };
}

/** Its program ends by itself, and says what it was given. */
function taskImage(): LocalImage {
  const program = `const { readFileSync, writeSync } = require("node:fs");
    let [how, args, env] = ["cold", process.argv.slice(2), { SECRET: "s" }];
    if (process.env.SPRY_WARM_FD) {
      writeSync(3, "waiting\\n");
      const line = readFileSync(4, "utf8");
      if (line === "") process.exit(0);
      [how, { args, env }] = ["warm", JSON.parse(line)];
    }
    console.log(how, ...args, env.SECRET);
    process.exitCode = Number(args[1]);`;
  const image = imageWith({ "opt/task/task.cjs": program }, {});
  const labels = { ...image.config.Labels, "io.spry.task": "true" };
  Object.assign(image.config, { Entrypoint: ["node", "/opt/task/task.cjs"], Labels: labels });
  return { ...image, digest: `sha256:warm-${++images}` };
}

async function openSandbox(dataDir = newDataDir()) {
  const sandbox = await openOciSandbox({
    dataDir,
    warm: { max: 1, isShipped: () => Promise.resolve(true) },
  });
  const recovered = await sandbox.recover();
  onTestFinished(() => sandbox.close());
  return { dataDir, sandbox, recovered };
}

function newDataDir(): string {
  const dataDir = realpathSync(mkdtempSync(path.join(tmpdir(), "spry-oci-warm-")));
  onTestFinished(() => {
    // Runs last: every Pod and the sandbox are closed.
    expect(leftovers(dataDir)).toEqual([]);
    rmSync(dataDir, { recursive: true, force: true });
  });
  return dataDir;
}

let pods = 0;
const isolation = { ...restricted, memoryLimit: 128 * mebibyte, cpuLimit: 0.5, startCpuLimit: 1 };

async function startPod(
  sandbox: Sandbox,
  image: LocalImage,
  more: Partial<ContainerSpec> & { volume?: Record<string, string> } = {},
) {
  const uid = `11111111-2222-3333-5555-${String(++pods).padStart(12, "0")}`;
  const place: PodSandbox = await sandbox.openPod({
    uid,
    namespace: "default",
    name: `p${pods}`,
    expected: { image, isolation: more.isolation ?? isolation },
  });
  onTestFinished(() => place.close());
  const source = path.join(place.dir, "volumes", "settings");
  mkdirSync(source, { recursive: true });
  const { volume = {}, ...rest } = more;
  for (const [name, text] of Object.entries(volume)) writeFileSync(path.join(source, name), text);
  const spec = specFor(place.dir, image, {
    name: "main",
    argv: image.config.Entrypoint ?? [],
    hostName: `host-${pods}`,
    isolation,
    ...rest,
  });
  // A file in a directory that neither image nor base has.
  const file = path.join(place.dir, "a file");
  writeFileSync(file, "from the Pod");
  spec.mounts = [
    ...spec.mounts,
    { mountPath: "/etc/settings", source, readOnly: true },
    { mountPath: "/opt/some/file", source: file },
  ];
  const container = (await place.start(spec)) as OciContainer;
  await Promise.race([container.ready, container.exited]);
  return { place, container, spec };
}

const call = async (place: PodSandbox, at = "/") =>
  JSON.parse(await textFrom(`http://${place.ip}:8080${at}`)) as never;

async function warmedUp(sandbox: Sandbox, image: LocalImage, more: Partial<ContainerSpec> = {}) {
  const first = await startPod(sandbox, image, more);
  await eventually(() => expect(sandbox.warmFigures?.()?.waiting).toBe(1));
  return first;
}

const seen = `const fs = require("node:fs");
const tried = (work) => { try { return String(work()); } catch ({ code }) { return code; } };
exports.main = () => ({
  env: { ...process.env }, argv: process.argv, execPath: process.execPath, cwd: process.cwd(), pid: process.pid,
  ids: [process.getuid(), process.getgid(), process.getgroups()], host: require("node:os").hostname(),
  mounts: fs.readFileSync("/proc/self/mountinfo", "utf8").split("\\n").filter(Boolean)
    .map((line) => line.split(" ").slice(3).join(" ")).sort(),
  processes: fs.readdirSync("/proc").filter((name) => /^\\d+$/.test(name)).length,
  descriptors: fs.readdirSync("/proc/self/fd").length, roots: fs.readdirSync("/").sort(), dev: fs.readdirSync("/dev").sort(),
  limits: fs.readFileSync("/proc/self/limits", "utf8"), heap: require("node:v8").getHeapStatistics().heap_size_limit,
  status: fs.readFileSync("/proc/self/status", "utf8").split("\\n").filter((line) => /^(Cap|NoNewPrivs|Groups|Seccomp|NSpid)/.test(line)),
  cgroup: fs.readFileSync("/proc/self/cgroup", "utf8"),
  memory: tried(() => fs.readFileSync("/sys/fs/cgroup/memory/memory.limit_in_bytes")) + tried(() => fs.readFileSync("/sys/fs/cgroup/memory.max")),
  oom: fs.readFileSync("/proc/self/oom_score_adj", "utf8"), servers: require("node:dns").getServers(),
  resolv: fs.readFileSync("/etc/resolv.conf", "utf8"), hosts: fs.readFileSync("/etc/hosts", "utf8"),
  setting: tried(() => fs.readFileSync("/etc/settings/x")), file: tried(() => fs.readFileSync("/opt/some/file")),
  writes: ["/x", "/usr/src/app/x", "/etc/settings/x", "/etc/hosts", "/dev/termination-log"].map((file) => tried(() => fs.appendFileSync(file, "."))),
  stage: tried(() => fs.readdirSync("/.pod")), up: tried(() => fs.readdirSync("/proc/self/root/..").sort()),
});`;

describe.skipIf(why !== "")(`a warm container${why}`, () => {
  test("becomes the container of a Pod, which has all that a cold one has, and nothing else", async () => {
    const { sandbox } = await openSandbox();
    const image = imageOf(seen);
    const env = { SECRET: "s3cret", NODE_OPTIONS: "--max-old-space-size=64" };
    const cold = await warmedUp(sandbox, image, { env });
    const warm = await startPod(sandbox, image, { env });
    expect(sandbox.warmFigures?.()).toMatchObject({ used: 1, missed: 1 });
    expect(general(await call(warm.place), warm)).toEqual(general(await call(cold.place), cold));
    expect(await call(warm.place)).toMatchObject({
      stage: "ENOENT",
      file: "from the Pod",
      env: { SECRET: "s3cret", HOME: "/home/node" },
    });
  });

  test("has volumes, commands, logs, use and an end as any container has", async () => {
    const { sandbox } = await openSandbox();
    const image = imageOf(
      `exports.main = () => (console.log("called"), globalThis.wasWarm);
       process.on("SIGTERM", () => { require("node:fs").writeFileSync(process.env.SPRY_TERMINATION_LOG, "over"); process.exit(7); });`,
    );
    await warmedUp(sandbox, image);
    const { place, container, spec } = await startPod(sandbox, image, {
      env: { GREETING: "hi" },
      volume: { x: "mine" },
    });
    expect(await call(place)).toBe(true);
    await eventually(() => expect(readFileSync(spec.logFile, "utf8")).toBe("called\n"));
    const argv = [
      "sh",
      "-c",
      "echo $GREETING; pwd; uname -n; echo $SPRY_WARM_FD; cat /etc/settings/x",
    ];
    const { output } = await container.exec(argv, { timeoutMs: 5000 });
    expect(output).toBe(`hi\n/usr/src/app/function\n${spec.hostName}\n\nmine`);
    const usage = (await sandbox.usage()).find(
      ({ startedAt }) => startedAt === container.startedAt,
    );
    expect(usage?.memoryBytes).toBeGreaterThan(10e6);
    container.kill("SIGTERM");
    expect(await container.exited).toMatchObject({ exitCode: 7 });
    expect(readFileSync(spec.terminationLog, "utf8")).toBe("over");
  });

  test("is one Pod's, once: the next run of its container, and another Pod, are started as ever", async () => {
    const { sandbox } = await openSandbox();
    const image = imageOf(`exports.main = () => globalThis.wasWarm;`);
    await warmedUp(sandbox, image);
    const both = await Promise.all([startPod(sandbox, image), startPod(sandbox, image)]);
    const warm = await Promise.all(both.map(({ place }) => call(place)));
    expect(new Set<boolean>(warm)).toEqual(new Set([true, false]));
    const used = both[warm.indexOf(true as never)];
    if (!used) throw new Error("none was warm");
    used.container.kill("SIGKILL");
    expect(await used.container.exited).toMatchObject({ exitCode: 137 });
    const again = await used.place.start({
      ...used.spec,
      run: 1,
      logFile: `${used.spec.logFile}.1`,
    });
    await again.ready;
    expect(await call(used.place)).toBe(false);
  });

  test("is for starts with the same limits and the same user alone", async () => {
    const { sandbox } = await openSandbox();
    const image = imageOf(`exports.main = () => globalThis.wasWarm;`);
    await warmedUp(sandbox, image);
    const larger = { ...isolation, memoryLimit: 256 * mebibyte };
    expect(await call((await startPod(sandbox, image, { isolation: larger })).place)).toBe(false);
    await eventually(() => expect(sandbox.warmFigures?.()?.waiting).toBe(1));
    const other = { ...larger, user: 1001 };
    expect(await call((await startPod(sandbox, image, { isolation: other })).place)).toBe(false);
    expect(sandbox.warmFigures?.()).toMatchObject({ used: 0 });
  });

  test("is an image's that was never started, if runtime and limits are the same", async () => {
    const { sandbox } = await openSandbox();
    await warmedUp(sandbox, imageOf(`exports.main = () => 1;`));
    const answer = async (source: string, more: Partial<ContainerSpec> = {}) => {
      const image = imageOf(source);
      await sandbox.prepare(image, () => {});
      return call((await startPod(sandbox, image, more)).place);
    };
    const source = "exports.main = () => globalThis.wasWarm;";
    expect(await answer(source)).toBe(true);
    await eventually(() => expect(sandbox.warmFigures?.()?.waiting).toBe(1));
    const other = { ...isolation, memoryLimit: 256 * mebibyte };
    expect(await answer(source, { isolation: other })).toBe(false);
    expect(sandbox.warmFigures?.()).toMatchObject({ used: 1, missed: 2 });
  });

  test("that is a task gets its arguments with its Pod, and its exit code outlives the platform", async () => {
    const { sandbox } = await openSandbox();
    const image = taskImage();
    const argv = [...(image.config.Entrypoint ?? []), "--code", "7"];
    const run = async (more: Partial<ContainerSpec> = {}) => {
      const started = await startPod(sandbox, image, { argv, keepExitCode: true, ...more });
      const { place, container, spec } = started;
      const { exitCode } = await container.exited;
      const code = readFileSync(exitFile(place.dir, spec.name), "latin1").trim();
      return [exitCode, code, readFileSync(spec.logFile, "utf8"), existsSync(place.dir)];
    };
    expect(await run()).toEqual([7, "7", "cold --code 7 s\n", true]);
    await eventually(() => expect(sandbox.warmFigures?.()?.waiting).toBe(1));
    expect(await run({ env: { SECRET: "s" } })).toEqual([7, "7", "warm --code 7 s\n", true]);
    expect(sandbox.warmFigures?.()).toMatchObject({ used: 1, missed: 1 });
  });

  test("is not used where a link of the image is in the way of a mount: it would be followed on the machine", async () => {
    const { sandbox, dataDir } = await openSandbox();
    await warmedUp(sandbox, imageOf(`exports.main = () => 1;`));
    const target = path.join(dataDir, "outside");
    mkdirSync(target);
    const image = imageOf(`exports.main = () => globalThis.wasWarm;`);
    symlinkSync(target, path.join(image.rootDir, "etc"));
    await startPod(sandbox, image);
    await eventually(() => expect(sandbox.warmFigures?.()?.waiting).toBe(1));
    expect(await call((await startPod(sandbox, image)).place)).toBe(false);
    expect(sandbox.warmFigures?.()).toMatchObject({ used: 0 });
    expect(existsSync(path.join(target, "hosts"))).toBe(false);
  });

  test("is there for others after a Pod that cannot be started, and does not outlive that one", async () => {
    const { sandbox } = await openSandbox();
    const image = imageOf(`exports.main = () => globalThis.wasWarm;`);
    await warmedUp(sandbox, image);
    const env = Object.fromEntries(
      Array.from({ length: 25 }, (_, i) => [`A${i}`, "a".repeat(1e5)]),
    );
    const large = await startPod(sandbox, image, { env });
    expect(await large.container.exited).toMatchObject({ exitCode: 1 });
    await eventually(() => expect(sandbox.warmFigures?.()?.waiting).toBe(1));
    // Its user was known as long as the Pod named one; what is left is found when the test ends.
    image.config.User = "stranger";
    const unnamed = { ...isolation, user: undefined };
    await expect(startPod(sandbox, image, { isolation: unnamed })).rejects.toThrow("user stranger");
    await startPod(sandbox, image);
    await eventually(() => expect(sandbox.warmFigures?.()?.waiting).toBe(1));
    expect(await call((await startPod(sandbox, image)).place)).toBe(true);
  });

  test("is not for an image with programs of its own: it would not have its own interpreter", async () => {
    const { sandbox } = await openSandbox();
    await warmedUp(sandbox, imageOf(`exports.main = () => 1;`));
    const dirs = { "proc/x": "", "dev/x": "", "sys/x": "", "usr/bin/x": "", "etc/x": "" };
    const image = imageOf(`exports.main = () => 2;`, dirs);
    for (const _ of [1, 2]) {
      const { container } = await startPod(sandbox, image);
      expect(await container.exited).toMatchObject({ reason: "StartError" });
      await eventually(() => expect(sandbox.warmFigures?.()?.waiting).toBe(1));
    }
  });

  test("that is a Pod's outlives the platform; what waits does not", async () => {
    const { sandbox, dataDir } = await openSandbox();
    const image = imageOf(`exports.main = () => globalThis.wasWarm;`);
    await warmedUp(sandbox, image);
    const { place } = await startPod(sandbox, image, { env: { GREETING: "hi" } });
    await eventually(() => expect(sandbox.warmFigures?.()?.waiting).toBe(1));
    await sandbox.close();
    const next = await openSandbox(dataDir);
    expect(await call(place)).toBe(true);
    const adopted = next.recovered.find(({ sandbox: { ip } }) => ip === place.ip);
    const exec = adopted?.containers[0]?.container.exec(["sh", "-c", "echo $GREETING"], {
      timeoutMs: 5000,
    });
    expect((await exec)?.output).toBe("hi\n");
    for (const each of next.recovered) await each.sandbox.close();
  });
});

/** Without what is a Pod's own: its directory, address, host name and container. */
function general(
  found: unknown,
  { place, spec, container }: { place: PodSandbox; spec: ContainerSpec; container: OciContainer },
) {
  const text = JSON.stringify(found)
    .replaceAll(place.dir, "<pod>")
    .replaceAll(container.id, "<id>")
    .replaceAll(place.ip, "<ip>")
    .replaceAll(path.basename(place.dir), "<uid>")
    .replaceAll(spec.hostName, "<host>")
    .replace(/(<ip>\\t)p\d+/, "$1<name>");
  return JSON.parse(text) as unknown;
}
