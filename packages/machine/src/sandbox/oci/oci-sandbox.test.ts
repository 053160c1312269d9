import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type ContainerConfig } from "@spry/image";
import { eventually, temporaryDirectory } from "../../testing.ts";
import { isAlive } from "../processes.ts";
import { findPython, pythonVersions } from "../python-installations.ts";
import { listNames } from "../records.ts";
import {
  type ContainerSpec,
  type Isolation,
  type LocalImage,
  type PodSandbox,
  type Sandbox,
} from "../sandbox.ts";
import { type OciContainer } from "./oci-container.ts";
import { findRuntime } from "./oci-runtime.ts";
import { openOciSandbox } from "./oci-sandbox.ts";

const why =
  process.getuid?.() === 0 && findRuntime() ? "" : " (skipped: needs root and runc on the PATH)";
const pod = { uid: "11111111-2222-3333-4444-555555555555", namespace: "default", name: "hello" };
const mebibyte = 1024 * 1024;
/** As the Pods of Functions are. */
const restricted: Isolation = {
  user: 1000,
  group: 1000,
  supplementalGroups: [1000],
  readOnlyRoot: true,
  allowPrivilegeEscalation: false,
  privileged: false,
  addedCapabilities: [],
  droppedCapabilities: ["ALL"],
  seccomp: "RuntimeDefault",
};
const unconfined: Isolation = {
  supplementalGroups: [],
  readOnlyRoot: false,
  allowPrivilegeEscalation: true,
  privileged: false,
  addedCapabilities: [],
  droppedCapabilities: [],
  seccomp: "RuntimeDefault",
};

function imageWith(files: Record<string, string>, config: ContainerConfig = {}): LocalImage {
  const rootDir = temporaryDirectory();
  chmodSync(rootDir, 0o755);
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(rootDir, file)), { recursive: true });
    writeFileSync(path.join(rootDir, file), text);
  }
  const label = `node@${process.versions.node.split(".")[0]}`;
  const Labels = { "io.spry.interpreter": label };
  return { digest: "sha256:1", rootDir, config: { Labels, ...config } };
}

function specFor(dir: string, image: LocalImage, more: Partial<ContainerSpec>): ContainerSpec {
  mkdirSync(path.join(dir, "containers", "main"), { recursive: true });
  const at = (name: string) => path.join(dir, "containers", "main", name);
  writeFileSync(at("termination-log"), "");
  return {
    name: "main",
    run: 0,
    image,
    argv: ["node", "/app/main.cjs"],
    env: {},
    mounts: [{ mountPath: "/dev/termination-log", source: at("termination-log") }],
    ports: [],
    logFile: at("0.log"),
    terminationLog: at("termination-log"),
    keepExitCode: false,
    hostName: "hello",
    isolation: restricted,
    ...more,
  };
}

/** Mounts, cgroups and processes of a data directory: what must be nothing in the end. */
function leftovers(dataDir: string): string[] {
  const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
  const trees = readdirSync("/sys/fs/cgroup").filter((name) =>
    existsSync(`/sys/fs/cgroup/${name}/cgroup.procs`),
  );
  const groups = ["", ...trees].flatMap((tree) =>
    // A group of another platform goes at any moment.
    listNames(`/sys/fs/cgroup/${tree}`)
      .filter((name) => name.startsWith("spry-"))
      .map((name) => `/sys/fs/cgroup/${tree}/${name}`),
  );
  const hash = execFileSync("sh", ["-c", `printf %s "${dataDir}" | sha256sum | cut -c1-12`]);
  const own = groups.filter((group) => group.endsWith(hash.toString().trim()));
  const processes = readdirSync("/proc").filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) &&
        readFileSync(`/proc/${pid}/environ`, "utf8").includes(`SPRY_OCI=${dataDir}`)
      );
    } catch {
      return false;
    }
  });
  return [...mounts.filter((line) => line.includes(dataDir)), ...own, ...processes];
}

describe.skipIf(why !== "")(`containers of an OCI runtime${why}`, () => {
  let dataDir = "";
  let sandbox: Sandbox;
  let place: PodSandbox;
  let number = 0;
  beforeAll(async () => {
    const { mkdtempSync, realpathSync } = await import("node:fs");
    const { tmpdir } = await import("node:os");
    dataDir = realpathSync(mkdtempSync(path.join(tmpdir(), "spry-oci-")));
    sandbox = await openOciSandbox({ dataDir });
    await sandbox.recover();
  });
  afterAll(async () => {
    await sandbox.close();
    expect(leftovers(dataDir)).toEqual([]);
    const { rmSync } = await import("node:fs");
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function start(files: Record<string, string>, more: Partial<ContainerSpec> = {}) {
    const uid = `${pod.uid.slice(0, -3)}${100 + number++}`;
    place = await sandbox.openPod({ ...pod, uid });
    const mine = place;
    onTestFinished(() => mine.close());
    const spec = specFor(place.dir, imageWith(files), more);
    const container = (await place.start(spec)) as OciContainer;
    return { container, spec, place: mine, log: () => readFileSync(spec.logFile, "utf8") };
  }

  async function runOnce(files: Record<string, string>, more: Partial<ContainerSpec> = {}) {
    const started = await start(files, more);
    const exit = await started.container.exited;
    return { ...started, exit, output: started.log() };
  }

  const main = (text: string) => ({ "app/main.cjs": text });

  test("a server answers at the Pod's address, and says itself that it is ready", async () => {
    const { container, place } = await start(
      main(`
        require("node:http").createServer((_, response) => response.end("hi")).listen(
          8080, process.env.SERVER_HOST,
          () => require("node:fs").writeSync(Number(process.env.SPRY_READY_FD), "ready\\n"))`),
    );
    await container.ready;
    expect(await (await fetch(`http://${place.ip}:8080/`)).text()).toBe("hi");
    container.kill("SIGKILL");
    expect(await container.exited).toMatchObject({ exitCode: 137 });
  });

  test("a container sees the environment of its Pod, its own processes and its own name", async () => {
    const { output, place } = await runOnce(
      main(`
        const { readdirSync, readFileSync } = require("node:fs");
        console.log(JSON.stringify({ env: process.env, pid: process.pid,
          pids: readdirSync("/proc").filter((name) => Number(name)),
          hostname: require("node:os").hostname(), hosts: readFileSync("/etc/hosts", "utf8") }))`),
      { env: { GREETING: "hi" } },
    );
    const seen = JSON.parse(output);
    expect(seen).toMatchObject({ pid: 1, pids: ["1"], hostname: "hello" });
    expect(seen.hosts).toContain(`${place.ip}\thello`);
    expect(Object.keys(seen.env).sort()).toEqual([
      "GREETING",
      "HOME",
      "HOSTNAME",
      "PATH",
      "SPRY_READY_FD",
      "SPRY_TERMINATION_LOG",
    ]);
  });

  test("the restricted security context holds", async () => {
    const { output } = await runOnce(
      main(`
        const fs = require("node:fs");
        const tried = (work) => { try { work(); return "done"; } catch ({ code }) { return code; } };
        const status = Object.fromEntries(fs.readFileSync("/proc/self/status", "utf8").split("\\n").map((line) => line.split(":\\t")));
        console.log(JSON.stringify({
          user: [process.getuid(), process.getgid(), ...process.getgroups()],
          write: [tried(() => fs.writeFileSync("/app/x", "")), tried(() => fs.writeFileSync("/x", ""))],
          hostFile: tried(() => fs.readFileSync("/etc/shadow")),
          capabilities: [status.CapEff, status.CapBnd], noNewPrivileges: status.NoNewPrivs, seccomp: status.Seccomp }))`),
    );
    const none = "0000000000000000";
    expect(JSON.parse(output)).toEqual({
      user: [1000, 1000, 1000],
      write: ["EROFS", "EROFS"],
      hostFile: "ENOENT",
      capabilities: [none, none],
      noNewPrivileges: "1",
      seccomp: "2",
    });
  });

  test("calls that make namespaces are refused even to root with all that it is given", async () => {
    const image = imageWith({});
    execFileSync("cp", ["/usr/bin/unshare", path.join(image.rootDir, "unshare")]);
    const attempts = ["--user", "--mount"].map((flag) => `/unshare ${flag} true; echo $?`);
    const run = (isolation: Isolation) =>
      runOnce({}, { image, isolation, argv: ["sh", "-c", attempts.join(";")] });
    const confined = await run(unconfined);
    expect(confined.output.match(/Operation not permitted/g)).toHaveLength(2);
    expect((await run({ ...unconfined, seccomp: "Unconfined" })).output).toContain("0\n");
  });

  test("volumes are at their real paths, read-only where the Pod says so", async () => {
    const { exit, output } = await (async () => {
      const uid = `${pod.uid.slice(0, -3)}900`;
      const place = await sandbox.openPod({ ...pod, uid });
      onTestFinished(() => place.close());
      const secret = path.join(place.dir, "volumes", "secret");
      const scratch = path.join(place.dir, "volumes", "scratch");
      for (const dir of [secret, scratch]) mkdirSync(dir, { recursive: true });
      chmodSync(scratch, 0o777);
      writeFileSync(path.join(secret, "key"), "s3cret");
      const image = imageWith(
        main(`
          const fs = require("node:fs");
          fs.writeFileSync("/workspace/build/out", fs.readFileSync("/secret/key"));
          try { fs.writeFileSync("/secret/key", "x"); } catch ({ code }) { console.log(code); }
          console.log(fs.readFileSync("/workspace/build/out", "utf8"));`),
      );
      const spec = specFor(place.dir, image, {});
      const mounts = [
        { mountPath: "/workspace/build", source: scratch },
        { mountPath: "/secret", source: secret, readOnly: true },
      ];
      const container = await place.start({ ...spec, mounts: [...spec.mounts, ...mounts] });
      const exit = await container.exited;
      expect(readFileSync(path.join(scratch, "out"), "utf8")).toBe("s3cret");
      return { exit, output: readFileSync(spec.logFile, "utf8") };
    })();
    expect({ exit, output }).toMatchObject({ exit: { exitCode: 0 }, output: "EROFS\ns3cret\n" });
  });

  test("a link in a volume does not lead out of the Pod", async () => {
    const place = await sandbox.openPod({ ...pod, uid: `${pod.uid.slice(0, -3)}901` });
    onTestFinished(() => place.close());
    const scratch = path.join(place.dir, "volumes", "scratch");
    mkdirSync(scratch, { recursive: true });
    symlinkSync("/etc", path.join(scratch, "link"));
    const spec = specFor(place.dir, imageWith(main("")), {
      mounts: [{ mountPath: "/data", source: path.join(scratch, "link") }],
    });
    await expect(place.start(spec)).rejects.toThrow("leads out of the Pod");
  });

  test("what ends a container reaches the termination log and the log", async () => {
    const { exit, spec, output } = await runOnce(
      main(`
        require("node:fs").writeFileSync("/dev/termination-log", "the end");
        console.log("out"); console.error("err"); process.exitCode = 3`),
    );
    expect(exit).toMatchObject({ exitCode: 3 });
    expect(readFileSync(spec.terminationLog, "utf8")).toBe("the end");
    expect(output.split("\n").sort()).toEqual(["", "err", "out"]);
  });

  test.each([
    { what: "does not handle", code: "", exit: { exitCode: 143, signal: "SIGTERM" } },
    {
      what: "handles",
      code: "process.on('SIGTERM', () => setTimeout(() => process.exit(5), 400));",
      exit: { exitCode: 5 },
    },
  ])("a signal that a program $what reaches it as anywhere", async ({ code, exit }) => {
    const { container, log } = await start(
      main(`${code} console.log("on"); setTimeout(() => {}, 60_000)`),
    );
    await eventually(() => expect(log()).toContain("on"));
    container.kill("SIGTERM");
    expect(await container.exited).toMatchObject(exit);
  });

  test("more memory than the limit ends it as OOMKilled", async () => {
    const { exit } = await runOnce(
      main(`const all = []; for (;;) all.push(Buffer.alloc(${8 * mebibyte}, 1))`),
      { isolation: { ...restricted, memoryLimit: 96 * mebibyte } },
    );
    expect(exit).toMatchObject({ exitCode: 137, reason: "OOMKilled" });
  });

  test("Node.js knows the limit of its container", async () => {
    const { output } = await runOnce(main("console.log(process.constrainedMemory())"), {
      isolation: { ...restricted, memoryLimit: 96 * mebibyte },
    });
    expect(output.trim()).toBe(String(96 * mebibyte));
  });

  test("a processor limit slows it down, and its use is told", async () => {
    const spin = "const end = Date.now() + 1500; while (Date.now() < end); console.log('spun')";
    const { container, log } = await start(main(`${spin}; setTimeout(() => {}, 60_000)`), {
      isolation: { ...restricted, cpuLimit: 0.2 },
    });
    await eventually(() => expect(log()).toContain("spun"));
    const used = (await sandbox.usage()).find(({ container }) => container === "main");
    container.kill("SIGKILL");
    await container.exited;
    // 1.5 s and the start of Node.js at a fifth of a core, instead of 1.5 s and more.
    expect(used?.cpuNanoseconds).toBeLessThan(700e6);
    expect(used?.memoryBytes).toBeGreaterThan(5 * mebibyte);
  });

  test("a server has a whole core until it is ready, and its limit soon after", async () => {
    const { container, log } = await start(
      main(`
        const { writeSync } = require("node:fs");
        const spin = (ms) => {
          const before = process.cpuUsage();
          for (const end = Date.now() + ms; Date.now() < end;);
          const { user, system } = process.cpuUsage(before);
          return Math.round((user + system) / ms / 10);
        };
        const starting = spin(400);
        writeSync(Number(process.env.SPRY_READY_FD), "ready\\n");
        setTimeout(() => console.log(JSON.stringify({ starting, limited: spin(1500) })), 800);
        setTimeout(() => {}, 60_000);`),
      { isolation: { ...restricted, cpuLimit: 0.2, startCpuLimit: 1 } },
    );
    await eventually(() => expect(log()).toContain("limited"));
    // In percent of a core, on a machine that does other things, too.
    const { starting, limited } = JSON.parse(log()) as Record<string, number>;
    expect(limited).toBeLessThan(30);
    expect(starting).toBeGreaterThan(limited! * 1.3);
    container.kill("SIGKILL");
    await container.exited;
  });

  test("a program that is told to end at any moment of its start ends at once", async () => {
    const program = `
      process.on("SIGTERM", () => process.exit(143));
      const begin = Date.now(); while (Date.now() - begin < 30);
      setTimeout(() => {}, 60_000);`;
    const slow = { isolation: { ...restricted, cpuLimit: 0.1 } };
    for (let afterMs = 0; afterMs < 600; afterMs += 25) {
      const { container } = await start(main(program), slow);
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      container.kill("SIGTERM");
      const late = new Promise((resolve) =>
        setTimeout(resolve, 15_000, `deaf after ${afterMs} ms`),
      );
      expect(await Promise.race([container.exited, late])).toMatchObject({ exitCode: 143 });
    }
  });

  test("has an address and a loopback device of its own, and reaches its Pod alone there", async () => {
    const server = (port: number) =>
      `require("node:http").createServer((_, answer) => answer.end("mine")).listen(${port}, process.env.HOST, () => console.log("up"));`;
    const first = await start(main(server(80)), { env: { HOST: "0.0.0.0" } });
    const second = await start(main(server(80)), { env: { HOST: "127.0.0.1" } });
    for (const { log } of [first, second]) await eventually(() => expect(log()).toContain("up"));
    expect(await textFrom(`http://${first.place.ip}/`)).toBe("mine");
    expect(second.place.ip).not.toBe(first.place.ip);
    const ask = (host: string) => [
      "node",
      "-e",
      `fetch("http://${host}").then((answer) => answer.text()).then(console.log, (error) => console.log(error.cause.code))`,
    ];
    const limits = { timeoutMs: 15_000 };
    const heard = async (host: string) =>
      (await second.container.exec(ask(host), limits)).output.trim();
    expect(await heard("127.0.0.1")).toBe("mine");
    expect(await heard(first.place.ip)).toBe("mine");
    expect(await heard(second.place.ip)).toBe("ECONNREFUSED");
  });

  test("a command runs beside it as the same user, and is ended when it takes too long", async () => {
    const { container } = await start(main("setTimeout(() => {}, 60_000)"));
    const limits = { timeoutMs: 15_000 };
    const show = ["node", "-p", "process.getuid() + process.env.SPRY_READY_FD"];
    expect(await container.exec(show, limits)).toEqual({
      exitCode: 0,
      output: "10003\n",
    });
    expect(await container.exec(["sh", "-c", "exit 4"], limits)).toMatchObject({ exitCode: 4 });
    const endless = ["node", "-e", "setTimeout(() => {}, 60_000)"];
    expect(await container.exec(endless, { timeoutMs: 300 })).toMatchObject({ exitCode: -1 });
    const count = ["sh", "-c", "ls -d /proc/[0-9]* | wc -l"];
    await eventually(async () =>
      expect(Number((await container.exec(count, limits)).output)).toBeLessThanOrEqual(5),
    );
  });

  test("a container that has an input can be written to", async () => {
    const { container, log } = await start(main("process.stdin.pipe(process.stdout)"), {
      stdin: "once",
    });
    container.openStdin()?.end("typed");
    expect(await container.exited).toMatchObject({ exitCode: 0 });
    expect(log()).toBe("typed");
  });

  test("a container with tty runs on a terminal that can be resized and written to", async () => {
    const show =
      "process.stdout.on('resize', () => console.log('resized ' + process.stdout.columns));";
    const end = "process.stdin.once('data', () => process.exit(7))";
    const { container, log } = await start(
      main(`console.log(process.stdin.isTTY + ' ' + process.env.TERM); ${show} ${end}`),
      { stdin: "terminal", tty: true, keepExitCode: true },
    );
    await eventually(() => expect(log()).toContain("true xterm\r\n"));
    container.resize?.({ columns: 77, rows: 20 });
    await eventually(() => expect(log()).toContain("resized 77"));
    container.openStdin?.()?.write("go\n");
    expect(await container.exited).toMatchObject({ exitCode: 7 });
  });

  test("a person's command has its streams, and a terminal if it asks for one", async () => {
    const { container } = await start(main("setTimeout(() => {}, 60_000)"));
    const plain = container.execStreams({
      argv: ["sh", "-c", "cat; echo problem >&2; exit 3"],
      stdin: true,
      tty: false,
    });
    plain.stdin?.end("typed");
    expect(await text(plain.stdout)).toBe("typed");
    expect(await text(plain.stderr ?? plain.stdout)).toBe("problem\n");
    expect(await plain.exited).toEqual({ exitCode: 3 });
    const show = "process.stdout.on('resize', () => process.exit(process.stdout.columns))";
    const argv = [
      "node",
      "-e",
      `${show}; setInterval(() => {}, 1000); console.log('on a terminal')`,
    ];
    const terminal = container.execStreams({ argv, stdin: true, tty: true });
    await once(terminal.stdout, "data");
    terminal.resize({ columns: 77, rows: 20 });
    expect(await terminal.exited).toEqual({ exitCode: 77 });
  });

  test("Python of this machine runs with its standard library and its pip", async (context) => {
    const version = pythonVersions().findLast((each) => Number(each.slice(2)) >= 9);
    if (version === undefined) context.skip("there is no Python on this machine");
    const Labels = { "io.spry.interpreter": `python@${version}` };
    const code = "import ssl, json, sys, asyncio; print(json.dumps(list(sys.version_info[:2])))";
    const image = imageWith({ "app/main.py": code }, { Labels });
    await sandbox.prepare(image, () => {});
    const argv = ["sh", "-c", "python3 /app/main.py && pip --version"];
    const { output } = await runOnce({}, { image, argv });
    expect(output).toContain(`[${version?.replace(".", ", ")}]\npip `);
  });

  test("a Python below /tmp is there although a volume is mounted at /tmp", async (context) => {
    // Another than the test before has made ready.
    const version = pythonVersions().find((each) => Number(each.slice(2)) >= 9);
    const found = version && (await findPython(version));
    if (!found || found.prefix.startsWith("/usr")) context.skip("it needs a Python of a directory");
    const { prefix = "" } = found || {};
    const copy = path.join(temporaryDirectory(), "python");
    execFileSync("cp", ["-al", prefix, copy]);
    const before = process.env["PATH"];
    process.env["PATH"] = `${copy}/bin:${before}`;
    onTestFinished(() => void (process.env["PATH"] = before));
    const Labels = { "io.spry.interpreter": `python@${version}` };
    const image = imageWith({ "app/main.py": "import json, sys; print(sys.prefix)" }, { Labels });
    await sandbox.prepare(image, () => {});
    const place = await sandbox.openPod({ ...pod, uid: `${pod.uid.slice(0, -3)}902` });
    onTestFinished(() => place.close());
    const volume = path.join(place.dir, "volumes", "tmp");
    mkdirSync(volume, { recursive: true, mode: 0o777 });
    const spec = specFor(place.dir, image, {
      argv: ["python3", "-c", "import json, sys; print(sys.base_prefix)"],
    });
    const mounts = [...spec.mounts, { mountPath: "/tmp", source: volume }];
    const container = await place.start({ ...spec, mounts });
    await container.exited;
    expect(readFileSync(spec.logFile, "utf8")).toBe(`${copy}\n`);
  });

  test("an image with a root file system of its own is used as it is", async () => {
    const image = imageWith({ "usr/bin/keep": "", "data/x": "mine" }, { Labels: {} });
    for (const file of ["/bin/cat", ...librariesOf("/bin/cat")]) {
      mkdirSync(path.join(image.rootDir, path.dirname(file)), { recursive: true });
      execFileSync("cp", ["-L", file, path.join(image.rootDir, file)]);
    }
    const { output } = await runOnce({}, { image, argv: ["/bin/cat", "/data/x"] });
    expect(output).toBe("mine");
    const { exit } = await runOnce({}, { image, argv: ["node"] });
    expect(exit.reason).toBe("StartError");
  });

  test("a program that does not exist is a container that could not start, and leaves nothing", async () => {
    const { exit } = await runOnce({}, { argv: ["no-such-program"] });
    expect(exit).toMatchObject({
      exitCode: 128,
      reason: "StartError",
      message: expect.stringContaining('exec: "no-such-program": executable file not found'),
    });
  });

  test.each([
    { asked: "privileged", isolation: { privileged: true }, error: "privileged" },
    { asked: "SYS_ADMIN", isolation: { addedCapabilities: ["SYS_ADMIN"] }, error: "SYS_ADMIN" },
  ])("$asked is refused with its name", async ({ isolation, error }) => {
    await expect(start(main(""), { isolation: { ...unconfined, ...isolation } })).rejects.toThrow(
      error,
    );
  });

  test("the same container starts again with a clean root file system", async () => {
    const image = main(`
      const fs = require("node:fs");
      console.log(fs.existsSync("/app/mark")); fs.writeFileSync("/app/mark", "")`);
    const { place, spec, output } = await runOnce(image, { isolation: unconfined });
    const again = await place.start({ ...spec, run: 1 });
    await again.exited;
    expect([output, readFileSync(spec.logFile, "utf8")]).toEqual(["false\n", "false\nfalse\n"]);
  });
});

test.skipIf(why !== "")(
  `where nothing can be overlaid, a copy of the image serves${why}`,
  async () => {
    // Such a path cannot be an option of an overlay.
    const dataDir = path.join(temporaryDirectory(), "a,b");
    const sandbox = await openOciSandbox({ dataDir });
    const place = await sandbox.openPod(pod);
    onTestFinished(() => place.close().then(() => sandbox.close()));
    const image = imageWith({
      "app/main.cjs": `
      const fs = require("node:fs");
      fs.writeFileSync("/app/mine", ""); fs.writeFileSync("/tmp/mine", "");
      console.log(require("node:child_process").execFileSync("sh", ["-c", "env echo works"]) + fs.readdirSync("/app"));`,
    });
    const spec = specFor(place.dir, image, { isolation: unconfined });
    const container = (await place.start(spec)) as OciContainer;
    const exit = await container.exited;
    const output = readFileSync(spec.logFile, "utf8");
    expect({ exit, output }).toMatchObject({
      exit: { exitCode: 0 },
      output: "works\nmain.cjs,mine\n",
    });
    expect(readdirSync(path.join(image.rootDir, "app"))).toEqual(["main.cjs"]);
  },
);

test.skipIf(why !== "")(
  `a table of nftables that a platform without its interface has left keeps nobody from Pods${why}`,
  async () => {
    const dataDir = temporaryDirectory();
    const before = await openOciSandbox({ dataDir });
    const { hostAddress } = before;
    await before.close();
    const nft = (...lines: string[]) =>
      execFileSync("nft", ["-f", "-"], { input: lines.join("\n") });
    const table = "table ip spry_00000000";
    nft(
      table,
      `${table} { chain input { type filter hook input priority 0;`,
      `ip daddr ${hostAddress} iifname != { "lo", "spry-00000000" } drop`,
      "}",
      "}",
    );
    onTestFinished(() => void nft(table, `delete ${table}`));
    const sandbox = await openOciSandbox({ dataDir });
    onTestFinished(() => sandbox.close());
    expect(sandbox.hostAddress).toBe(hostAddress);
    const place = await sandbox.openPod(pod);
    onTestFinished(() => place.close());
    const image = imageWith({
      "app/main.cjs": `
        require("node:http").createServer((_, response) => response.end("hi")).listen(
          8080, process.env.SERVER_HOST,
          () => require("node:fs").writeSync(Number(process.env.SPRY_READY_FD), "ready\\n"))`,
    });
    const container = (await place.start(specFor(place.dir, image, {}))) as OciContainer;
    await container.ready;
    expect(await textFrom(`http://${place.ip}:8080/`)).toBe("hi");
    container.kill("SIGKILL");
    await container.exited;
  },
);

describe.skipIf(why !== "")(`an agent that was killed${why}`, () => {
  test("while it opened a Pod has left none: the next one opens it as a whole", async () => {
    const dataDir = temporaryDirectory();
    const first = await openOciSandbox({ dataDir });
    await first.recover();
    // In the way of the Pod's files, so that opening it ends where a kill may have ended it.
    const etc = path.join(dataDir, "pods", pod.uid, "etc");
    mkdirSync(path.dirname(etc), { recursive: true });
    writeFileSync(etc, "");
    await expect(first.openPod(pod)).rejects.toThrow();
    await first.close();

    const next = await openOciSandbox({ dataDir });
    onTestFinished(() => next.close());
    expect(await next.recover()).toEqual([]);
    const place = await next.openPod(pod);
    onTestFinished(() => place.close());
    const image = imageWith({
      "app/main.cjs": `console.log(require("node:fs").readFileSync("/etc/hosts", "utf8"))`,
    });
    const spec = specFor(place.dir, image, {});
    const container = await place.start(spec);
    expect(await container.exited).toMatchObject({ exitCode: 0 });
    expect(readFileSync(spec.logFile, "utf8")).toContain("localhost");
  });

  test("leaves its containers running; the next one adopts them and removes strays", async () => {
    const dataDir = temporaryDirectory();
    const image = imageWith({
      "app/main.cjs": `
        const server = require("node:http").createServer((_, answer) => answer.end("served"));
        server.listen(0, () => console.log("started", server.address().port));
        process.on("SIGTERM", () => process.exit(7)); setTimeout(() => {}, 60_000)`,
    });
    const agent = spawn(process.execPath, ["--input-type=module", "-e", agentProgram], {
      env: { DATA_DIR: dataDir, SPEC: JSON.stringify({ image, pod }), PATH: process.env["PATH"] },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const said = await new Promise<string>((resolve) => {
      let text = "";
      agent.stdout.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        if (text.includes("\n")) resolve(text);
      });
    });
    agent.kill("SIGKILL");
    const { dir, pid } = JSON.parse(said) as { dir: string; pid: number };
    const port = await eventually(() => {
      const log = readFileSync(path.join(dir, "containers/main/0.log"), "utf8");
      expect(log).toMatch(/started \d+\n/);
      return log.trim().split(" ")[1];
    });

    const sandbox = await openOciSandbox({ dataDir });
    onTestFinished(() => sandbox.close());
    const [recovered, ...others] = await sandbox.recover();
    expect(others).toEqual([]);
    expect(recovered).toMatchObject({ ...pod, containers: [{ name: "main", run: 0 }] });
    const container = recovered?.containers[0]?.container as OciContainer;
    expect(container.record.pid).toBe(pid);
    expect(isAlive(container.record)).toBe(true);
    // The second container had no record any more: a stray.
    expect(readdirSync(path.join(dataDir, "oci", "containers"))).toEqual([container.id]);
    // On the network that it had.
    expect(await textFrom(`http://${recovered?.sandbox.ip}:${port}/`)).toBe("served");
    container.kill("SIGTERM");
    // Known beyond the agent's life, because the Pod asked for it.
    expect(await container.exited).toMatchObject({ exitCode: 7 });
    await recovered?.sandbox.close();
    await eventually(() => expect(leftovers(dataDir)).toEqual([]));
  });
});

/** Starts two containers, forgets one of them, and waits to be killed. */
const agentProgram = `
  import { mkdirSync, rmSync, writeFileSync } from "node:fs";
  import path from "node:path";
  import { openOciSandbox } from ${JSON.stringify(path.join(import.meta.dirname, "oci-sandbox.ts"))};
  setInterval(() => {}, 1000);
  const { image, pod } = JSON.parse(process.env.SPEC);
  const sandbox = await openOciSandbox({ dataDir: process.env.DATA_DIR });
  await sandbox.recover();
  const place = await sandbox.openPod(pod);
  const begin = async (name) => {
    const dir = path.join(place.dir, "containers", name);
    mkdirSync(dir, { recursive: true });
    const terminationLog = path.join(dir, "termination-log");
    writeFileSync(terminationLog, "");
    return place.start({ name, run: 0, image, argv: ["node", "/app/main.cjs"], env: {}, mounts: [],
      ports: [], logFile: path.join(dir, "0.log"), terminationLog, keepExitCode: true, hostName: "hello" });
  };
  const stray = await begin("stray");
  rmSync(path.join(place.dir, "containers", "stray", "oci.json"));
  const { record } = await begin("main");
  console.log(JSON.stringify({ dir: place.dir, pid: record.pid }));
`;

async function textFrom(url: string): Promise<string> {
  return (await fetch(url)).text();
}

function librariesOf(program: string): string[] {
  const text = execFileSync("ldd", [program]).toString();
  return [...text.matchAll(/(\/\S+) \(0x/g)].map((match) => match[1] ?? "");
}
