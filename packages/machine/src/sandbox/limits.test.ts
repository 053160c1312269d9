/** What the machine has too little of is named, and takes nothing for dead. */
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { identify, silentLogger } from "@spry/kube";
import { describe, expect, onTestFinished, test } from "vitest";
import { temporaryDirectory } from "../testing.ts";
import { processSandbox } from "./process-sandbox.ts";
import { podDir, podFile, processFile } from "./records.ts";
import { containerSpec } from "./testing.ts";

const argv = ["/bin/sleep", "60"];
const isLinux = process.platform === "linux";
const pod = { uid: "11111111-2222-3333-4444-555555555555", namespace: "default", name: "hello" };

async function openPod() {
  const sandbox = processSandbox({ dataDir: temporaryDirectory(), log: silentLogger });
  await sandbox.recover();
  const place = await sandbox.openPod(pod);
  onTestFinished(() => place.close());
  return place;
}

const long = "x".repeat(4e6);
const tooLong = "its arguments and its environment are longer than this machine allows together";

describe("more than the machine takes for one program", () => {
  test.each([
    ["arguments", { argv: ["/bin/sleep", long] }],
    ["an environment", { env: { LONG: long } }],
  ])("%s: the container has ended, with the reason", async (_what, more) => {
    const place = await openPod();
    const container = await place.start(containerSpec(place.dir, { argv, ...more }));
    const exit = await container.exited;
    expect(exit).toMatchObject({ exitCode: 128, reason: "StartError" });
    expect(exit.message).toContain(tooLong);
  });

  test("a command in a container is answered with the reason, and the container goes on", async () => {
    const place = await openPod();
    const container = await place.start(containerSpec(place.dir, { argv }));
    const exec = container.execStreams?.({ argv: ["/bin/echo", long], stdin: true, tty: false });
    await expect(exec?.exited).rejects.toThrow(tooLong);
    const probe = await container.exec(["/bin/echo", long], { timeoutMs: 5_000 });
    expect(probe.exitCode).toBe(126);
    expect(probe.output).toContain(tooLong);
    expect(await container.exec(["/bin/echo", "on"], { timeoutMs: 5_000 })).toEqual({
      exitCode: 0,
      output: "on\n",
    });
  });
});

/** A node agent's sandbox in a process of its own, with so many descriptors; resolves with what it has said at its end. */
async function agent(program: string): Promise<string[]> {
  const url = (file: string) => JSON.stringify(new URL(file, import.meta.url).href);
  const script = `
    const { processSandbox } = await import(${url("./process-sandbox.ts")});
    const { findByEnvironment } = await import(${url("./processes.ts")});
    const { openSync, closeSync } = await import("node:fs");
    setInterval(() => {}, 1000);
    process.on("unhandledRejection", (error) => { console.log("unhandled", error); process.exit(1); });
    const dataDir = ${JSON.stringify(temporaryDirectory())};
    const pod = ${JSON.stringify(pod)};
    const { mkdirSync, writeFileSync } = await import("node:fs");
    const prepared = ({ dir }) => {
      const at = (name) => dir + "/containers/main/" + name;
      mkdirSync(at(""), { recursive: true });
      writeFileSync(at("termination-log"), "");
      const image = { digest: "sha256:1", rootDir: dataDir, config: {} };
      const files = { logFile: at("0.log"), terminationLog: at("termination-log") };
      const argv = ["/bin/sleep", "60"];
      const none = { env: {}, mounts: [], ports: [], keepExitCode: false, hostName: "hello" };
      return { name: "main", run: 0, image, argv, ...none, ...files };
    };
    let all = [];
    const useUp = () => { try { for (;;) all.push(openSync("/dev/null")); } catch {} };
    const giveBack = () => { for (const each of all.splice(0)) closeSync(each); };
    const open = async () => {
      const sandbox = processSandbox({ dataDir });
      return { sandbox, found: await sandbox.recover() };
    };
    ${program}
    process.exit();`;
  const argv = ["--nofile=128", process.execPath, "--input-type=module", "-e", script];
  const child = spawn("prlimit", argv, { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (said += text));
  await new Promise((resolve) => child.once("close", resolve));
  return said.trim().split("\n");
}

describe.skipIf(!isLinux)("an agent without a descriptor left", () => {
  test("starts nothing, says why, takes no container for ended, and goes on later", async () => {
    const said = await agent(`
      const { sandbox } = await open();
      const place = await sandbox.openPod(pod);
      const container = await place.start(prepared(place));
      let isOver = false;
      void container.exited.then(() => (isOver = true));
      // Adopted: what is polled is whether the process is still the same.
      const { found: [again] } = await open();
      let isAdoptedOver = false;
      void again.containers[0].container.exited.then(() => (isAdoptedOver = true));
      useUp();
      await new Promise((resolve) => setTimeout(resolve, 1200));
      console.log(isOver, isAdoptedOver);
      const failure = (error) => console.log(error.message);
      await container.execStreams({ argv: ["/bin/true"], stdin: false, tty: false }).exited.catch(failure);
      setTimeout(giveBack, 600);
      // Waits for a descriptor instead of finding nothing.
      console.log((await findByEnvironment("SPRY_ROOT=" + place.dir + "/")).length);
      await container.execStreams({ argv: ["/bin/true"], stdin: false, tty: false }).exited;
      useUp();
      setTimeout(giveBack, 600);
      await place.close();
      await container.exited;
      console.log(isOver, (await findByEnvironment("SPRY_ROOT=" + place.dir + "/")).length);`);
    expect(said).toEqual([
      "false false",
      'exec: "/bin/true": true could not be started: the limit of open files of the program that starts it is reached',
      "1",
      "true 0",
    ]);
  });

  test("looks at all processes with few descriptors, however many Pods ask at once", async () => {
    const said = await agent(`
      const { readdirSync } = await import("node:fs");
      const count = () => readdirSync("/proc/self/fd").length;
      const before = count();
      let most = 0;
      const watch = setInterval(() => (most = Math.max(most, count())), 0);
      const asks = Array.from({ length: 500 }, () => findByEnvironment("SPRY_ROOT=/nowhere"));
      await Promise.all(asks);
      clearInterval(watch);
      console.log(most - before <= 24 ? "few" : most - before);`);
    expect(said).toEqual(["few"]);
  });
});

describe.skipIf(!isLinux)("a record of a process that is damaged", () => {
  const own = identify(process.pid);
  const good = { container: "main", run: 0, id: "a", startedAt: 1, cwd: "/", env: {} };
  const startTicks = Number(own.startTime);
  test.each([
    ["of number 0", { ...good, pid: 0, startTicks }],
    ["of number -0", { ...good, pid: -0, startTicks }],
    ["of number 1", { ...good, pid: 1, startTicks: 1 }],
    ["of number -1", { ...good, pid: -1, startTicks }],
    ["of this process", { ...good, pid: process.pid, startTicks }],
    ["without a start", { ...good, pid: process.ppid }],
    ["of another boot", { ...good, pid: process.ppid, startTicks: 1, boot: "another" }],
    ["of another shape", { ...good, env: null, pid: process.ppid, startTicks: 1 }],
    ["null", null],
    ["a list", [good]],
  ])("%s: nothing is signalled, and its Pod is there", async (_what, record) => {
    const dataDir = temporaryDirectory();
    const dir = podDir(dataDir, pod.uid);
    mkdirSync(path.join(dir, "containers/main"), { recursive: true });
    for (const name of ["tmp", "home", "shm"]) mkdirSync(path.join(dir, name));
    writeFileSync(podFile(dir), JSON.stringify({ ...pod, ip: "127.20.0.1" }));
    writeFileSync(processFile(dir, "main"), JSON.stringify(record));
    const sandbox = processSandbox({ dataDir });
    const [found] = await sandbox.recover();
    expect(found).toMatchObject({ uid: pod.uid, containers: [] });
    await found?.sandbox.close();
  });

  test.each([
    ["an address that is none", { ...pod, ip: "0" }],
    ["no address", pod],
    ["no name", { ...pod, name: 1, ip: "127.20.0.1" }],
  ])("a Pod's with %s: the Pod is made again", async (_what, record) => {
    const dataDir = temporaryDirectory();
    const dir = podDir(dataDir, pod.uid);
    mkdirSync(dir, { recursive: true });
    writeFileSync(podFile(dir), JSON.stringify(record));
    expect(await processSandbox({ dataDir }).recover()).toEqual([]);
    expect(() => readFileSync(podFile(dir))).toThrow("ENOENT");
  });
});
