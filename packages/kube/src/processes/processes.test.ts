/** Processes that are signalled, looked at and started, at the limits of the machine: each row is a process of its own. */
import { execFileSync, spawn } from "node:child_process";
import { expect, onTestFinished, test } from "vitest";
import { identify, lifeOf, readIdentity, signalIdentity } from "./process-identity.ts";
import { mapInTurn } from "./in-turn.ts";

const isLinux = process.platform === "linux";
const isRoot = isLinux && process.getuid?.() === 0;
const face = new URL("../index.ts", import.meta.url).href;

/** Runs a program of this room in a group of its own; resolves with what it has said when it has ended. */
async function run(program: string, { before = [] as string[], uid = 0 } = {}) {
  const script = `const kube = await import(${JSON.stringify(face)});
    const { openSync, closeSync } = await import("node:fs");
    const useUp = () => { const all = []; try { for (;;) all.push(openSync("/dev/null")); } catch { return all; } };
    const caught = (error) => console.log(error.name, error.code, error.isPassing, error.message);
    ${program}`;
  const argv = [...before, process.execPath, "--input-type=module", "-e", script];
  const child = spawn(argv[0] ?? "", argv.slice(1), { detached: true, ...(uid > 0 && { uid }) });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (said += text));
  const ended = new Promise<string>((resolve) =>
    child.once("close", (code, signal) => resolve(`${said}${signal ?? code}`)),
  );
  return { child, ended, said: () => said };
}

test("no number reaches the sender, its group, the machine's first process, or all processes", async () => {
  const { ended } = await run(`
    for (const pid of [0, -0, 1, -1, 2 ** 31, 2 ** 40, 1.5, NaN, Infinity, undefined, null, "2", process.pid, -process.pid])
      for (const send of [kube.signalProcess, kube.signalGroup])
        if (send(pid, "SIGKILL") !== false) console.log("sent to", pid);
    const own = kube.identify(process.pid);
    if (kube.signalIdentity(own, "SIGKILL")) console.log("sent to itself");
    console.log("survived");`);
  expect(await ended).toBe("survived\n0");
});

test("the group of the sender is spared, also where another process leads it", async () => {
  const { ended } = await run(`
    const { spawn } = await import("node:child_process");
    const program = 'const kube = await import(${JSON.stringify(face)});' +
      'console.log(kube.signalGroup(process.ppid, "SIGKILL"), kube.readStat(process.pid).group === process.ppid);';
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "inherit" });
    child.once("exit", (code, signal) => console.log(signal ?? code));`);
  expect(await ended).toBe("false true\n0\n0");
});

test("a process and a group of others are signalled", async () => {
  const child = spawn("/bin/sh", ["-c", "sleep 60 & wait"], { detached: true });
  const ended = new Promise((resolve) => child.once("exit", (_code, signal) => resolve(signal)));
  const identity = identify(child.pid ?? 0);
  expect(lifeOf(identity)).toBe("alive");
  expect(signalIdentity({ ...identity, startTime: "1" }, "SIGKILL")).toBe(!isLinux);
  expect(signalIdentity(identity, "SIGKILL")).toBe(true);
  expect(await ended).toBe("SIGKILL");
  expect(lifeOf(identity)).toBe("dead");
  expect(signalIdentity(identity, "SIGKILL")).toBe(false);
});

test.skipIf(!isLinux)(
  "what a file says is an identity only with the number of a process and a start time",
  () => {
    const known = identify(process.ppid);
    expect(readIdentity(JSON.parse(JSON.stringify(known)))).toEqual(known);
    for (const wrong of [
      ...[0, -0, -1, 1.5, "12", null, undefined].map((pid) => ({ ...known, pid })),
      ...[0, "0", "", "x", "-1", "1e3", undefined, null].map((startTime) => ({
        ...known,
        startTime,
      })),
      { ...known, boot: 1 },
      null,
      undefined,
      5,
      "text",
      [],
    ])
      expect(readIdentity(wrong)).toBeUndefined();
    expect(lifeOf({ ...known, boot: "another" })).toBe("dead");
    expect(lifeOf({ ...known, pid: 1 })).toBe("dead");
  },
);

test.skipIf(!isLinux)(
  "the caller and the first process are alive, and are never signalled by their identities",
  () => {
    for (const pid of [1, process.pid]) {
      const known = readIdentity(JSON.parse(JSON.stringify(identify(pid))));
      expect(known).toEqual(identify(pid));
      expect(known && lifeOf(known)).toBe("alive");
      expect(known && signalIdentity(known, "SIGKILL")).toBe(false);
    }
  },
);

test.skipIf(!isLinux)(
  "without a descriptor left, a process is not taken for dead, and none is signalled",
  async () => {
    const { ended } = await run(
      `const known = { pid: process.ppid, startTime: "1" };
     console.log(kube.lifeOf(known));
     closeSync(openSync("/dev/null"));
     const all = useUp();
     // With the descriptor that was kept for this.
     console.log(kube.lifeOf(known));
     while (useUp().length > 0);
     console.log(kube.lifeOf({ pid: process.pid, startTime: "1" }));`,
      { before: ["prlimit", "--nofile=64"] },
    );
    expect(await ended).toBe("dead\ndead\ndead\n0");
    const { ended: second } = await run(
      `useUp();
     console.log(kube.lifeOf({ pid: process.ppid, startTime: "1" }), kube.signalIdentity({ pid: process.ppid, startTime: "1" }, "SIGKILL"));
     console.log(kube.lifeOf({ pid: 2 ** 22 - 1, startTime: "1" }));`,
      { before: ["prlimit", "--nofile=64"] },
    );
    expect(await second).toBe("unknown false\ndead\n0");
  },
);

test.skipIf(!isLinux)(
  "a program that the limit of open files keeps from starting is named with it",
  async () => {
    const { ended } = await run(
      `const all = useUp();
     for (const fd of all.splice(0, 3)) closeSync(fd);
     await kube.startProgram("/bin/true", [], { stdio: ["pipe", "pipe", "pipe"] }).catch(caught);
     for (const fd of all) closeSync(fd);
     const { pid, startTicks } = await kube.startProgram("/bin/true", [], {});
     console.log(pid > 1, startTicks > 0);`,
      { before: ["prlimit", "--nofile=64"] },
    );
    expect(await ended).toBe(
      "NotStarted EMFILE true true could not be started: the limit of open files of the program that starts it is reached\ntrue true\n0",
    );
  },
);

test("so is one with too long arguments or environment, and one that does not exist", async () => {
  const { ended } = await run(`
    const long = "x".repeat(4e6);
    await kube.startProgram("/bin/true", [long], {}).catch(caught);
    await kube.startProgram("/bin/true", [], { env: { long } }).catch(caught);
    await kube.startProgram("/nowhere/true", [], {}).catch(caught);`);
  const tooLong =
    "NotStarted E2BIG false true could not be started: its arguments and its environment are longer than this machine allows together";
  const missing = "NotStarted ENOENT false true could not be started: spawn /nowhere/true ENOENT";
  expect(await ended).toBe(`${tooLong}\n${tooLong}\n${missing}\n0`);
});

test.skipIf(!isRoot)("so is one for which the limit of processes leaves no room", async () => {
  const { child, ended, said } = await run(
    `console.log("waiting");
     await new Promise((resolve) => process.stdin.once("data", resolve));
     await kube.startProgram("/bin/true", [], {}).catch(caught);
     process.exit();`,
    { uid: 61_234 },
  );
  await expect.poll(said).toBe("waiting\n");
  execFileSync("prlimit", ["--pid", String(child.pid), "--nproc=1"], {
    uid: 61_234,
  });
  child.stdin.write("go\n");
  expect(await ended).toBe(
    "waiting\nNotStarted EAGAIN true true could not be started: the limit of processes is reached (of this user, or of this machine)\n0",
  );
});

test("a long list is worked on by so many at a time, in its order", async () => {
  let now = 0;
  let most = 0;
  const results = await mapInTurn(Array.from({ length: 50 }).keys(), 4, async (each) => {
    most = Math.max(most, ++now);
    await new Promise(setImmediate);
    now--;
    return each * 2;
  });
  expect(most).toBe(4);
  expect(results).toEqual(Array.from({ length: 50 }, (_, at) => at * 2));
  await expect(mapInTurn([1], 4, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
});
