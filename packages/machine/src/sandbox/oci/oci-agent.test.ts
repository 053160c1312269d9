import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually, temporaryDirectory } from "../../testing.ts";
import { isAlive } from "../processes.ts";
import { type OciContainer } from "./oci-container.ts";
import { openOciSandbox } from "./oci-sandbox.ts";
import { imageWith, leftovers, pod, specFor, textFrom, unconfined, why } from "./testing.ts";

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
  `an nftables table that a platform without an interface has left does not block the way to Pods${why}`,
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

test.skipIf(why !== "")(
  `Pods reach an offered port although another socket has it at the machine's address${why}`,
  async () => {
    const sandbox = await openOciSandbox({ dataDir: temporaryDirectory() });
    onTestFinished(() => sandbox.close());
    const listen = async (host: string, port: number, text: string) => {
      const server = createServer((_, response) => response.end(text));
      await new Promise<void>((resolve) => server.listen(port, host, resolve));
      onTestFinished(() => void server.close());
      return (server.address() as AddressInfo).port;
    };
    const port = await listen("127.0.0.1", 0, "offered");
    await listen(sandbox.hostAddress, port, "in the way");
    await sandbox.applyCluster({ services: [], policies: [], pods: [], namespaces: new Map() });
    await sandbox.offer(port);
    const place = await sandbox.openPod(pod);
    onTestFinished(() => place.close());
    const image = imageWith({
      "app/main.cjs": `fetch("http://${sandbox.hostAddress}:${port}/").then((answer) => answer.text()).then(console.log)`,
    });
    const spec = specFor(place.dir, image, {});
    await (
      await place.start(spec)
    ).exited;
    expect(readFileSync(spec.logFile, "utf8")).toBe("offered\n");
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

    // Another platform leaves a network alone that Pods are in.
    await (await openOciSandbox({ dataDir: temporaryDirectory() })).close();
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

  test("without Pods has left a network, which the next platform of the machine removes", async () => {
    const program = `
      import { openOciSandbox } from ${JSON.stringify(path.join(import.meta.dirname, "oci-sandbox.ts"))};
      setInterval(() => {}, 1000);
      await openOciSandbox({ dataDir: process.env.DATA_DIR });
      console.log("open");`;
    const dataDir = realpathSync(temporaryDirectory());
    const agent = spawn(process.execPath, ["--input-type=module", "-e", program], {
      env: { DATA_DIR: dataDir, PATH: process.env["PATH"] },
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(agent.stdout, "data");
    const hash = createHash("sha256").update(dataDir).digest("hex");
    const left = () =>
      ["/sys/class/net", "/run/netns"].flatMap((place) =>
        readdirSync(place).filter((name) => name.startsWith(`spry-${hash.slice(0, 8)}`)),
      );
    expect(left()).not.toEqual([]);
    const ended = once(agent, "exit");
    agent.kill("SIGKILL");
    await ended;
    const next = await openOciSandbox({ dataDir: temporaryDirectory() });
    onTestFinished(() => next.close());
    expect(left()).toEqual([]);
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
