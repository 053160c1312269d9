import { describe, expect, test } from "vitest";
import { eventually } from "../../testing.ts";
import { pythonVersions } from "../python-installations.ts";
import { imageWith, mebibyte, ociContainers, restricted, textFrom, why } from "./testing.ts";

describe.skipIf(why !== "")(`a container's limits and its network${why}`, () => {
  const { start, runOnce, main, sandbox } = ociContainers();

  test("more memory than the limit ends it as OOMKilled", async () => {
    const { exit } = await runOnce(
      main(`const all = []; for (;;) all.push(Buffer.alloc(${8 * mebibyte}, 1))`),
      { isolation: { ...restricted, memoryLimit: 96 * mebibyte } },
    );
    expect(exit).toMatchObject({ exitCode: 137, reason: "OOMKilled" });
  });

  test("what one container takes of the kernel's limits for each user is not missing in another, and ends it beyond its share", async (context) => {
    const version = pythonVersions().findLast((each) => Number(each.slice(2)) >= 9);
    if (version === undefined) context.skip("Python is not installed on this machine");
    const Labels = { "io.spry.interpreter": `python@${version}` };
    const greedy = `
import ctypes, os, resource, signal
libc = ctypes.CDLL(None)
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))
taken = 0
while libc.inotify_init() >= 0: taken += 1
print(taken, flush=True)
signal.pause()`;
    const files = { "app/main.py": greedy };
    const greedyImage = imageWith(files, { Labels });
    await sandbox().prepare(greedyImage, () => {});
    const { container, log } = await start(files, {
      image: greedyImage,
      argv: ["python3", "/app/main.py"],
    });
    await eventually(() => expect(Number(log())).toBeGreaterThan(1000));
    // Of the same user, while the other one has them all.
    const { output } = await runOnce(
      main(`
        const { watch } = require("node:fs");
        watch("/app").close();
        console.log("watched");`),
    );
    expect(output).toBe("watched\n");
    expect(await container.exited).toMatchObject({
      exitCode: 137,
      message:
        "the container was ended: it had more than 128 inotify instances (watchers of files), the limit for a container",
    });
  });

  test("Node.js knows the limit of its container", async () => {
    const { output } = await runOnce(main("console.log(process.constrainedMemory())"), {
      isolation: { ...restricted, memoryLimit: 96 * mebibyte },
    });
    expect(output.trim()).toBe(String(96 * mebibyte));
  });

  test("a processor limit slows it down, and its usage is reported", async () => {
    const spin = "const end = Date.now() + 1500; while (Date.now() < end); console.log('spun')";
    const { container, log } = await start(main(`${spin}; setTimeout(() => {}, 60_000)`), {
      isolation: { ...restricted, cpuLimit: 0.2 },
    });
    await eventually(() => expect(log()).toContain("spun"));
    const used = (await sandbox().usage()).find(({ container }) => container === "main");
    container.kill("SIGKILL");
    await container.exited;
    // 1.5 s and the start of Node.js at a fifth of a core, instead of 1.5 s and more.
    expect(used?.cpuNanoseconds).toBeLessThan(700e6);
    expect(used?.memoryBytes).toBeGreaterThan(5 * mebibyte);
  });

  test.each([
    [
      "a server, until it is ready",
      `writeSync(Number(process.env.SPRY_READY_FD), "ready\\n");`,
      false,
    ],
    ["a task, for a second", "", true],
  ])("%s, has a whole core, and its limit soon after", async (_, ready, keepExitCode) => {
    const { container, log } = await start(
      main(`
        const { readFileSync, writeSync } = require("node:fs");
        // Of the container's control group (v2, v1), in hundredths of a core; what it is matters, not what a busy machine gives.
        const quota = () => {
          for (const name of ["cpu.max", "cpu/cpu.cfs_quota_us"])
            try {
              return Number.parseInt(readFileSync("/sys/fs/cgroup/" + name, "utf8")) / 1000;
            } catch {}
        };
        const starting = quota();
        ${ready}
        setInterval(() => {
          if (quota() !== starting) console.log(JSON.stringify({ starting, limited: quota() }));
        }, 20);`),
      { keepExitCode, isolation: { ...restricted, cpuLimit: 0.2, startCpuLimit: 1 } },
    );
    await eventually(() => expect(log()).toContain("limited"));
    const [line = ""] = log().split("\n");
    expect(JSON.parse(line)).toEqual({ starting: 100, limited: 20 });
    container.kill("SIGKILL");
    await container.exited;
  });

  test.each([
    ["a program", "", 25],
    ["one that is ready soon", `require("node:fs").writeSync(3, "ready\\n");`, 0],
  ])("%s that gets SIGTERM at any moment of its start ends at once", async (_, ready, firstMs) => {
    const program = `
      process.on("SIGTERM", () => process.exit(143));
      ${ready}
      const begin = Date.now(); while (Date.now() - begin < 30);
      setTimeout(() => {}, 60_000);`;
    const slow = { isolation: { ...restricted, cpuLimit: 0.1 } };
    for (let afterMs = firstMs; afterMs < 600; afterMs += 50) {
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
});
