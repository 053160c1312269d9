import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually, temporaryDirectory } from "../../testing.ts";
import { findPython, pythonVersions } from "../python-installations.ts";
import { type Isolation } from "../sandbox.ts";
import { imageWith, librariesOf, ociContainers, pod, specFor, unconfined, why } from "./testing.ts";

describe.skipIf(why !== "")(`containers of an OCI runtime${why}`, () => {
  const { start, runOnce, main, sandbox } = ociContainers();

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
      const place = await sandbox().openPod({ ...pod, uid });
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
    const place = await sandbox().openPod({ ...pod, uid: `${pod.uid.slice(0, -3)}901` });
    onTestFinished(() => place.close());
    const scratch = path.join(place.dir, "volumes", "scratch");
    mkdirSync(scratch, { recursive: true });
    symlinkSync("/etc", path.join(scratch, "link"));
    const spec = specFor(place.dir, imageWith(main("")), {
      mounts: [{ mountPath: "/data", source: path.join(scratch, "link") }],
    });
    await expect(place.start(spec)).rejects.toThrow("leads outside the Pod");
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

  test("Python of this machine runs with its standard library and its pip", async (context) => {
    const version = pythonVersions().findLast((each) => Number(each.slice(2)) >= 9);
    if (version === undefined) context.skip("Python is not installed on this machine");
    const Labels = { "io.spry.interpreter": `python@${version}` };
    const code = "import ssl, json, sys, asyncio; print(json.dumps(list(sys.version_info[:2])))";
    const image = imageWith({ "app/main.py": code }, { Labels });
    await sandbox().prepare(image, () => {});
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
    await sandbox().prepare(image, () => {});
    const place = await sandbox().openPod({ ...pod, uid: `${pod.uid.slice(0, -3)}902` });
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
