import { execFile, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  readFileSync,
  readlinkSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { eventually, temporaryDirectory } from "../testing.ts";
import { directoryBytes } from "../node/disk-space.ts";
import { findByEnvironment, isAlive, readStat } from "./processes.ts";
import { Jails } from "./confinement/jails.ts";
import { findConfinement } from "./confinement/trial.ts";
import { openProcessSandbox, processSandbox } from "./process-sandbox.ts";
import { type ContainerSpec, type LocalImage, type Sandbox } from "./sandbox.ts";
import { containerSpec } from "./testing.ts";
import { hasTerminals, terminalSessions } from "./terminal.ts";

const run = promisify(execFile);

const pod = { uid: "11111111-2222-3333-4444-555555555555", namespace: "default", name: "hello" };

/** As images and volumes are unpacked: every user may read it. */
function publicDirectory(): string {
  const dir = temporaryDirectory();
  chmodSync(dir, 0o755);
  return dir;
}

function imageWith(files: Record<string, string>): LocalImage {
  const rootDir = publicDirectory();
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(rootDir, file)), { recursive: true });
    writeFileSync(path.join(rootDir, file), text);
  }
  const label = `node@${process.versions.node.split(".")[0]}`;
  return { digest: "sha256:1", rootDir, config: { Labels: { "io.spry.interpreter": label } } };
}

/** The sandbox under test: plain processes, or kept apart as this machine's means allow. */
let open: (options: { dataDir: string }) => Sandbox | Promise<Sandbox> = processSandbox;

async function openSandbox(dataDir = temporaryDirectory()) {
  const sandbox = await open({ dataDir });
  const recovered = await sandbox.recover();
  return { dataDir, sandbox, recovered };
}

function specFor(dir: string, image: LocalImage, more: Partial<ContainerSpec>): ContainerSpec {
  return containerSpec(dir, { image, argv: ["node", "/app/main.cjs"], ...more });
}

async function runOnce(files: Record<string, string>, more: Partial<ContainerSpec> = {}) {
  const { sandbox } = await openSandbox();
  const place = await sandbox.openPod(pod);
  onTestFinished(() => place.close());
  const spec = specFor(place.dir, imageWith(files), more);
  const container = await sandbox.openPod(pod).then((same) => same.start(spec));
  const exit = await container.exited;
  return { exit, place, spec, output: readFileSync(spec.logFile, "utf8") };
}

const scratch = mkdtempSync(path.join(tmpdir(), "spry-confinement-"));
const why = await findConfinement(scratch);
rmSync(scratch, { recursive: true });
const kinds = [
  { kind: "plain processes", opener: processSandbox },
  ...(typeof why === "string"
    ? []
    : [{ kind: "processes kept apart", opener: openProcessSandbox }]),
];
if (typeof why === "string") test.skip(`processes kept apart (skipped: ${why})`);

describe.each(kinds)("$kind", ({ opener }) => {
  beforeEach(() => {
    open = opener;
  });

  test("variables with names that no shell can set reach the program, which can say that it is ready", async () => {
    const { output, exit } = await runOnce(
      {
        "app/main.cjs": `require("node:fs").writeSync(3, "ready\\n");
          console.log(JSON.stringify([process.env["a.b-c"], process.env.UID]))`,
      },
      { env: { "a.b-c": "it's", UID: "7" } },
    );
    expect(exit).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(output)).toEqual(["it's", "7"]);
  });

  test("a container sees exactly the environment that its Pod and the sandbox give it", async () => {
    process.env["SPRY_TEST_SECRET_OF_THE_HOST"] = "x";
    onTestFinished(() => void delete process.env["SPRY_TEST_SECRET_OF_THE_HOST"]);
    const { output, place } = await runOnce(
      { "app/main.cjs": "console.log(JSON.stringify(process.env))" },
      { env: { GREETING: "hi" } },
    );
    const env = JSON.parse(output) as Record<string, string>;
    expect(Object.keys(env).sort()).toEqual([
      "GREETING",
      "HOME",
      "HOSTNAME",
      "NODE_OPTIONS",
      "PATH",
      "SERVER_HOST",
      "SPRY_READY_FD",
      "SPRY_ROOT",
      "SPRY_SERVICES",
      "SPRY_TERMINATION_LOG",
      "TMPDIR",
    ]);
    expect(env).toMatchObject({ GREETING: "hi", HOSTNAME: "hello", SERVER_HOST: place.ip });
  });

  test("paths of the image and of mounts reach the program as real ones", async () => {
    const volume = publicDirectory();
    writeFileSync(path.join(volume, "key"), "from the volume");
    const main = `
    const { readFileSync } = require("node:fs");
    const at = (file) => readFileSync(process.env.SPRY_ROOT + file, "utf8");
    console.log([
      process.cwd().endsWith("/app"),
      readFileSync(process.argv[2], "utf8"),
      readFileSync(process.argv[3].split("=")[1], "utf8"),
      readFileSync(process.env.KEY_FILE, "utf8"),
      process.env.BASE, process.env.OTHER,
      at("/etc/secret/key"), at("/app/data.txt"),
    ].join("|"));`;
    const { output } = await runOnce(
      { "app/main.cjs": main, "app/data.txt": "from the image", "etc/issue": "x" },
      {
        argv: ["node", "/app/main.cjs", "/app/data.txt", "--file=/etc/secret/key"],
        env: { KEY_FILE: "/etc/secret/key", BASE: "/", OTHER: "/no/such/path" },
        workingDir: "/app",
        mounts: [{ mountPath: "/etc/secret", source: volume }],
      },
    );
    expect(output.trim()).toBe(
      "true|from the image|from the volume|from the volume|/|/no/such/path|from the volume|from the image",
    );
  });

  test.each([
    { name: "its exit code", main: "process.exit(3)", exit: { exitCode: 3 } },
    {
      name: "the signal that ended it",
      main: "process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 9e3)",
      exit: { exitCode: 143 },
    },
  ])("an ended container tells $name", async ({ main, exit }) => {
    expect((await runOnce({ "app/main.cjs": main })).exit).toMatchObject(exit);
  });

  test("a program that does not exist is a container that could not start", async () => {
    const { exit } = await runOnce({}, { argv: ["no-such-program"] });
    expect(exit).toMatchObject({ exitCode: 128, reason: "StartError" });
    expect(exit.message).toContain("no-such-program");
  });

  test("a process says itself that it is ready, on the descriptor it was told", async () => {
    const { sandbox } = await openSandbox();
    const place = await sandbox.openPod(pod);
    onTestFinished(() => place.close());
    const main =
      "require('node:fs').writeSync(+process.env.SPRY_READY_FD, 'ready\\n'); setInterval(() => {}, 1e3)";
    const container = await place.start(
      specFor(place.dir, imageWith({ "app/main.cjs": main }), {}),
    );
    await container.ready;
  });

  test("every Pod has an address of its own, and keeps it", async () => {
    const { sandbox, dataDir } = await openSandbox();
    const first = await sandbox.openPod(pod);
    const second = await sandbox.openPod({ ...pod, uid: "2" });
    expect(first.ip).toMatch(/^127\./);
    expect(second.ip).not.toBe(first.ip);
    const { recovered } = await openSandbox(dataDir);
    expect(recovered.map((each) => each.sandbox.ip).sort()).toEqual([first.ip, second.ip].sort());
    // A Pod that another sandbox has made is made again.
    rmSync(path.join(second.dir, "home"), { recursive: true });
    const [only, ...others] = (await openSandbox(dataDir)).recovered;
    expect([only?.sandbox.ip, others]).toEqual([first.ip, []]);
  });

  test("a later sandbox finds running containers again and can end them", async () => {
    const first = await openSandbox();
    const place = await first.sandbox.openPod(pod);
    const image = imageWith({ "app/main.cjs": "setInterval(() => {}, 1000)" });
    await place.start(specFor(place.dir, image, { run: 4 }));
    const { recovered } = await openSandbox(first.dataDir);
    const [found] = recovered;
    expect(found).toMatchObject(pod);
    expect(found?.containers).toMatchObject([{ name: "main", run: 4 }]);
    found?.containers[0]?.container.kill("SIGTERM");
    expect(await found?.containers[0]?.container.exited).toMatchObject({
      exitCode: 137,
      reason: "ContainerStatusUnknown",
    });
    await found?.sandbox.close();
  });

  test("an exit code that is to be kept is known to a later sandbox", async () => {
    const first = await openSandbox();
    const place = await first.sandbox.openPod(pod);
    const main = `
    process.on("SIGTERM", () => setTimeout(() => process.exit(7), 50));
    require("node:fs").writeSync(3, "ready\\n");
    setInterval(() => {}, 1000);`;
    const spec = specFor(place.dir, imageWith({ "app/main.cjs": main }), { keepExitCode: true });
    const container = await place.start(spec);
    await container.ready;
    const [running] = (await openSandbox(first.dataDir)).recovered;
    running?.containers[0]?.container.kill("SIGTERM");
    expect(await container.exited).toMatchObject({ exitCode: 7 });
    expect(await running?.containers[0]?.container.exited).toMatchObject({ exitCode: 7 });
    // Ended before the next sandbox looks.
    const [ended] = (await openSandbox(first.dataDir)).recovered;
    expect(await ended?.containers[0]?.container.exited).toMatchObject({ exitCode: 7 });
    await ended?.sandbox.close();
  });

  test("processes that no record names are ended at the start", async () => {
    const first = await openSandbox();
    const place = await first.sandbox.openPod(pod);
    const image = imageWith({ "app/main.cjs": "setInterval(() => {}, 1000)" });
    const container = await place.start(specFor(place.dir, image, {}));
    const record = path.join(place.dir, "containers", "main", "process.json");
    const { pid, startTicks } = JSON.parse(readFileSync(record, "utf8")) as {
      pid: number;
      startTicks: number;
    };
    expect(isAlive({ pid, startTicks })).toBe(true);
    // As if the platform had been killed between starting the process and writing its record.
    writeFileSync(record, "");
    const { recovered } = await openSandbox(first.dataDir);
    expect(recovered[0]?.containers).toEqual([]);
    expect((await container.exited).signal).toBe("SIGKILL");
    await recovered[0]?.sandbox.close();
  });

  test("only of the container that runs on, a Pod's processes without a record are kept", async () => {
    const first = await openSandbox();
    const place = await first.sandbox.openPod(pod);
    const image = imageWith({ "app/main.cjs": "setInterval(() => {}, 1000)" });
    await place.start(specFor(place.dir, image, {}));
    mkdirSync(path.join(place.dir, "containers", "sidecar"));
    const sidecar = await place.start(specFor(place.dir, image, { name: "sidecar" }));
    writeFileSync(path.join(place.dir, "containers", "sidecar", "process.json"), "");
    const { recovered } = await openSandbox(first.dataDir);
    expect(recovered[0]?.containers).toMatchObject([{ name: "main" }]);
    expect((await sidecar.exited).signal).toBe("SIGKILL");
    await recovered[0]?.sandbox.close();
  });

  test("a program that has got the number of an ended container is left alone", async () => {
    const first = await openSandbox();
    const place = await first.sandbox.openPod(pod);
    const spec = specFor(place.dir, imageWith({ "app/main.cjs": "" }), { keepExitCode: true });
    await (
      await place.start(spec)
    ).exited;
    const other = spawn("sleep", ["60"], { detached: true, stdio: "ignore" });
    onTestFinished(() => void other.kill("SIGKILL"));
    const ended = new Promise((resolve) => {
      other.once("exit", (_code, signal) => resolve(signal));
    });
    const file = path.join(place.dir, "containers", "main", "process.json");
    const record = JSON.parse(readFileSync(file, "utf8")) as object;
    writeFileSync(file, JSON.stringify({ ...record, pid: other.pid }));
    const [found] = (await openSandbox(first.dataDir)).recovered;
    const container = found?.containers[0]?.container;
    expect(await container?.exited).toMatchObject({ exitCode: 0 });
    container?.kill("SIGKILL");
    await found?.sandbox.close();
    // Signals are handled in the order in which they were sent: an earlier one would have ended it.
    other.kill("SIGUSR1");
    expect(await ended).toBe("SIGUSR1");
  });

  test("CPU time and memory are those of the whole container", async () => {
    const { sandbox } = await openSandbox();
    const place = await sandbox.openPod(pod);
    onTestFinished(() => place.close());
    const main = `
    while (process.cpuUsage().user < 300_000);
    require("node:child_process").spawn("sleep", ["60"], { stdio: "ignore" });
    require("node:fs").writeSync(3, "ready\\n");
    setInterval(() => {}, 1000);`;
    const container = await place.start(
      specFor(place.dir, imageWith({ "app/main.cjs": main }), {}),
    );
    await container.ready;
    const [usage] = await sandbox.usage();
    expect(usage).toMatchObject({ podUid: pod.uid, container: "main" });
    expect(usage?.cpuNanoseconds).toBeGreaterThan(200e6);
    expect(usage?.memoryBytes).toBeGreaterThan(10e6);
  });

  test("a command is run next to the container, for so long and no longer", async () => {
    const { sandbox } = await openSandbox();
    const place = await sandbox.openPod(pod);
    onTestFinished(() => place.close());
    const image = imageWith({ "app/main.cjs": "setInterval(() => {}, 1000)" });
    const container = await place.start(specFor(place.dir, image, { env: { NAME: "world" } }));
    const timeoutMs = 15_000;
    expect(await container.exec(["sh", "-c", "echo hello $NAME"], { timeoutMs })).toEqual({
      exitCode: 0,
      output: "hello world\n",
    });
    expect(await container.exec(["sh", "-c", "exit 7"], { timeoutMs })).toMatchObject({
      exitCode: 7,
    });
    const deaf = ["sh", "-c", "trap '' TERM; sleep 90"];
    expect(await container.exec(deaf, { timeoutMs: 50 })).toMatchObject({ exitCode: -1 });
  });

  test.skipIf(!hasTerminals())(
    "a container with tty runs on a terminal that can be resized and written to",
    async () => {
      const { sandbox } = await openSandbox();
      const place = await sandbox.openPod(pod);
      onTestFinished(() => place.close());
      const script =
        "test -t 0 && test -t 1 && echo terminal; read line; echo got $line; stty size; exit 7";
      const spec = specFor(place.dir, imageWith({}), {
        argv: ["sh", "-c", script],
        stdin: "terminal-once",
        tty: true,
        keepExitCode: true,
      });
      const container = await place.start(spec);
      const output = () => readFileSync(spec.logFile, "utf8");
      await eventually(() => expect(output()).toContain("terminal"));
      container.resize?.({ columns: 77, rows: 33 });
      const input = container.openStdin?.();
      // The size is set by a program of its own.
      await eventually(async () => {
        const { stdout: size } = await run("stty", ["-F", terminalOf(container), "size"]);
        expect(size).toContain("33 77");
      });
      input?.write("hello\n");
      expect((await container.exited).exitCode).toBe(7);
      expect(output()).toMatch(/terminal\r\nhello\r\ngot hello\r\n33 77\r\n/);
    },
  );

  test.skipIf(!hasTerminals())(
    "a program on a terminal gets its signals, and ^D when its only guest leaves",
    async () => {
      const { sandbox } = await openSandbox();
      const place = await sandbox.openPod(pod);
      onTestFinished(() => place.close());
      const more = { stdin: "terminal-once", tty: true } as const;
      const trap = specFor(place.dir, imageWith({}), {
        ...more,
        argv: ["sh", "-c", "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done"],
      });
      const trapping = await place.start(trap);
      await eventually(() => expect(readFileSync(trap.logFile, "utf8")).toContain("up"));
      trapping.kill("SIGTERM");
      expect((await trapping.exited).exitCode).toBe(3);
      const reader = await place.start(
        specFor(place.dir, imageWith({}), { ...more, argv: ["cat"] }),
      );
      const input = reader.openStdin?.();
      input?.destroy();
      expect((await reader.exited).exitCode).toBe(0);
    },
  );
});

test("what a container has started ends with it, and with its Pod", async () => {
  open = processSandbox;
  const main = `
  const { spawn } = require("node:child_process");
  const child = (detached) => {
    const c = spawn("sleep", ["60"], { detached, stdio: "ignore" });
    c.unref();
    return c.pid;
  };
  console.log(child(false), child(true));`;
  const { output, place } = await runOnce({ "app/main.cjs": main });
  const [inGroup = 0, escaped = 0] = output.split(" ").map(Number);
  await eventually(() => expect(readStat(inGroup)?.state ?? "Z").toBe("Z"));
  expect(readStat(escaped)).toBeDefined();
  await place.close();
  await eventually(() => expect(readStat(escaped)?.state ?? "Z").toBe("Z"));
  expect(existsSync(place.dir)).toBe(false);
});

test("with the sandbox ends what containers that have ended left running", async () => {
  open = processSandbox;
  const { sandbox } = await openSandbox();
  const place = await sandbox.openPod(pod);
  onTestFinished(() => place.close());
  const main = `
  const child = require("node:child_process").spawn("sleep", ["60"], { detached: true, stdio: "ignore" });
  child.unref();
  console.log(child.pid);`;
  const spec = specFor(place.dir, imageWith({ "app/main.cjs": main }), {});
  await (
    await place.start(spec)
  ).exited;
  const pid = Number(readFileSync(spec.logFile, "utf8"));
  expect(readStat(pid)).toBeDefined();
  await sandbox.close();
  await eventually(() => expect(readStat(pid)?.state ?? "Z").toBe("Z"));
});

test.skipIf(typeof why === "string")(
  "kept apart, nothing that a container has started outlives it, whatever session it is in",
  async () => {
    open = openProcessSandbox;
    const main = `
      const child = require("node:child_process").spawn("sleep", ["61"], { detached: true, stdio: "ignore" });
      child.unref();
      require("node:fs").writeSync(3, "ready\\n");
      setTimeout(() => {}, 60_000);`;
    const { sandbox, dataDir: sandboxDir } = await openSandbox();
    const place = await sandbox.openPod(pod);
    onTestFinished(() => place.close());
    const container = await place.start(
      specFor(place.dir, imageWith({ "app/main.cjs": main }), {}),
    );
    await container.ready;
    const left = () => findByEnvironment(`SPRY_ROOT=${place.dir}/`);
    expect(await left()).toHaveLength(4);
    const jails = new Jails(sandboxDir);
    expect(existsSync(jails.of(pod.uid, "main"))).toBe(true);
    container.kill("SIGTERM");
    expect((await container.exited).exitCode).toBe(143);
    expect(await left()).toEqual([]);
    await sandbox.close();
    expect(existsSync(path.dirname(jails.of(pod.uid, "main")))).toBe(false);
    jails.remove(pod.uid);
  },
);

test.skipIf(typeof why === "string").each(["/tmp", "/var/tmp", "/dev/shm"])(
  "kept apart, all that a container writes is on the disk of its data directory, and counted: data below %s",
  async (parent) => {
    open = openProcessSandbox;
    const dataDir = mkdtempSync(path.join(parent, "spry-written-"));
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
    const { sandbox } = await openSandbox(dataDir);
    onTestFinished(() => sandbox.close());
    const place = await sandbox.openPod(pod);
    onTestFinished(() => place.close());
    const main = `
      const fs = require("node:fs");
      const places = [process.env.TMPDIR, process.env.HOME, "/tmp", "/var/tmp", "/dev/shm", "/", "/dev", "/run", "/var", "/etc"];
      const written = places.filter((dir) => {
        try { fs.writeFileSync(dir + "/file-" + places.indexOf(dir), "x".repeat(1e6)); return true; } catch { return false; }
      });
      console.log(JSON.stringify(written.map((dir) => [dir, fs.statfsSync(dir).type])));`;
    const spec = specFor(place.dir, imageWith({ "app/main.cjs": main }), {});
    await (
      await place.start(spec)
    ).exited;
    const written = JSON.parse(readFileSync(spec.logFile, "utf8")) as [string, number][];
    const { type } = statfsSync(dataDir);
    expect(written.length).toBeGreaterThanOrEqual(3);
    expect(written.filter((each) => each[1] !== type)).toEqual([]);
    const sizes = [place.dir, ...(place.elsewhere ?? [])].map((dir) => directoryBytes(dir));
    const counted = (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
    expect(counted).toBeGreaterThanOrEqual(written.length * 1e6);
    await place.close();
    expect((place.elsewhere ?? []).filter((dir) => existsSync(dir))).toEqual([]);
  },
);

test("a Pod whose directories are nested more deeply than a path can be long is removed", async () => {
  open = processSandbox;
  const { sandbox } = await openSandbox();
  const place = await sandbox.openPod(pod);
  const nest =
    "exec 2>&-; cd $0; for i in $(seq 25); do mkdir $1; cd $1; done; head -c 1000000 /dev/zero > x";
  await run("sh", ["-c", nest, path.join(place.dir, "tmp"), "d".repeat(200)]);
  expect(await directoryBytes(place.dir)).toBe(Number.POSITIVE_INFINITY);
  await place.close();
  expect(existsSync(place.dir)).toBe(false);
});

test.skipIf(typeof why === "string")(
  "a container ends with the helper that started it",
  async () => {
    open = openProcessSandbox;
    const { sandbox } = await openSandbox();
    const place = await sandbox.openPod(pod);
    onTestFinished(() => place.close());
    const main = `require("node:fs").writeSync(3, "ready\\n"); setInterval(() => {}, 1000);`;
    const container = await place.start(
      specFor(place.dir, imageWith({ "app/main.cjs": main }), {}),
    );
    await container.ready;
    process.kill((container as unknown as { pid: number }).pid, "SIGKILL");
    await container.exited;
    await eventually(async () => {
      expect(await findByEnvironment(`SPRY_ROOT=${place.dir}/`)).toEqual([]);
    });
  },
);

/** The file of the terminal that a container's program is on. */
function terminalOf(container: object): string {
  const [leader = 0] = terminalSessions((container as { pid: number }).pid);
  return readlinkSync(`/proc/${leader}/fd/0`);
}
