/** Streams into running Pods with the real kubectl: over WebSockets, and as older ones do over SPDY. */
import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough, Readable, Writable } from "node:stream";
import {
  assembleImage,
  createLayer,
  createRegistry,
  parseImageName,
  pushImage,
  RegistryClient,
} from "@spry/image";
import { type Pod, resources } from "@spry/kube";
import { createNode, type MachineNode, processSandbox } from "@spry/machine";
import { freePort } from "@spry/test-kit";
import { Exec, KubeConfig, PortForward, type V1Status } from "@kubernetes/client-node";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Harness, hasKubectl, startHarness } from "./harness.ts";

const registryHost = "registry.test";
const patience = { timeout: 30_000 };
/** Answers on 8080, echoes what it is sent, writes a line now and then. */
const program = `
  const net = require("node:net");
  require("node:http").createServer((request, response) => {
    let size = 0;
    request.on("data", (chunk) => (size += chunk.length));
    request.on("end", () => response.end("hello " + size));
  }).listen(8080, process.env.SERVER_HOST);
  net.createServer({ allowHalfOpen: true }, (socket) => {
    let text = "";
    socket.on("data", (chunk) => (text += chunk));
    socket.on("end", () => socket.end(text.toUpperCase()));
  }).listen(9090, process.env.SERVER_HOST);
  if (process.argv[2] === "echo") process.stdin.on("data", (chunk) => process.stdout.write("got " + chunk)).on("end", () => process.exit(7));
  else setInterval(() => console.log("tick"), 100);
`;

let harness: Harness;
let node: MachineNode;
let directory: string;
const ending = new AbortController();
const closers: (() => Promise<unknown>)[] = [];

async function startPod(name: string, image: string, more: object = {}): Promise<void> {
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default" },
    spec: {
      nodeName: "here",
      // No controller here makes what its volume needs.
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      restartPolicy: "Never",
      volumes: [{ name: "data", emptyDir: {} }],
      containers: [
        {
          name: "main",
          image,
          env: [{ name: "GREETING", value: "good day" }],
          volumeMounts: [{ name: "data", mountPath: "/data" }],
          ...more,
        },
      ],
    },
  } as unknown as Pod;
  await harness.client.create(resources.pods, pod);
  await vi.waitFor(
    async () => {
      const found = await harness.client.get(resources.pods, { namespace: "default", name });
      expect(found.status?.containerStatuses?.[0]?.state?.running).toBeDefined();
    },
    { timeout: 30_000, interval: 20 },
  );
}

async function pushProgram(): Promise<{ image: string; mirrors: Record<string, { url: string }> }> {
  const registry = createRegistry({ dir: path.join(directory, "registry") });
  const server = await registry.listen({ host: "127.0.0.1", port: 0 });
  closers.push(() => server.close().then(() => registry.close()));
  const mirrors = { [registryHost]: { url: `http://127.0.0.1:${server.port}` } };
  const image = assembleImage({
    layers: [await createLayer([{ path: "app/main.cjs", content: Buffer.from(program) }])],
    config: {
      Entrypoint: ["node", "/app/main.cjs"],
      WorkingDir: "/app",
      Labels: { "io.spry.interpreter": `node@${process.versions.node.split(".")[0]}` },
    },
  });
  const target = parseImageName(`${registryHost}/program:1`);
  const client = new RegistryClient({ resolve: () => mirrors[registryHost] });
  const { digest } = await pushImage(client, image, target);
  return { image: `${registryHost}/program@${digest}`, mirrors };
}

describe.runIf(hasKubectl())("kubectl", { timeout: 60_000 }, () => {
  let image: string;

  beforeAll(async () => {
    directory = mkdtempSync(path.join(tmpdir(), "pod-streams-"));
    harness = await startHarness({ kubelet: () => node.kubelet });
    const pushed = await pushProgram();
    image = pushed.image;
    const dataDir = path.join(directory, "node");
    mkdirSync(dataDir);
    node = createNode({
      client: harness.client,
      name: "here",
      dataDir,
      sandbox: processSandbox({ dataDir }),
      mirrors: pushed.mirrors,
    });
    const work = node.run(ending.signal);
    closers.unshift(async () => {
      await node.stop({ pods: "stop" });
      ending.abort();
      await work;
    });
    await startPod("web", image);
  }, 60_000);

  afterAll(async () => {
    for (const close of closers) await close();
    await harness.close();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  });

  const run = (input: string, ...args: string[]) => harness.kubectlWith(input, ...args);
  /** The same kubectl as it was before 1.31, which speaks SPDY. */
  const overSpdy = (input: string, ...args: string[]) =>
    new Promise<{ stdout: string; stderr: string; code: number }>((resolve) => {
      const env = {
        PATH: process.env.PATH ?? "",
        HOME: directory,
        KUBECONFIG: harness.kubeconfig,
        KUBECTL_REMOTE_COMMAND_WEBSOCKETS: "false",
        KUBECTL_PORT_FORWARD_WEBSOCKETS: "false",
      };
      const child = execFile("kubectl", args, { env, timeout: 30_000 }, (error, stdout, stderr) =>
        resolve({ stdout, stderr, code: error ? Number(error.code ?? -1) : 0 }),
      );
      child.stdin?.end(input);
    });

  describe.each([
    ["over WebSockets", run],
    ["over SPDY", overSpdy],
  ])("exec %s", (_protocol, kubectl) => {
    test("runs in the container's environment and directory", async () => {
      const script = 'echo "$GREETING"; basename "$PWD"; echo oops >&2';
      const result = await kubectl("", "exec", "web", "--", "sh", "-c", script);
      expect(result).toEqual({ stdout: "good day\napp\n", stderr: "oops\n", code: 0 });
    });

    test("hands the exit code on", async () => {
      const result = await kubectl("", "exec", "web", "--", "sh", "-c", "exit 3");
      expect(result.code).toBe(3);
      expect(result.stderr).toContain("command terminated with exit code 3");
    });

    test("passes a long input through, to its end", async () => {
      const input = "0123456789abcde\n".repeat(200_000);
      const result = await kubectl(input, "exec", "-i", "web", "--", "wc", "-c");
      expect(result.stdout.trim()).toBe(String(input.length));
      expect(result.code).toBe(0);
    });

    test("passes a long output through", async () => {
      const result = await kubectl(
        "",
        "exec",
        "web",
        "--",
        "sh",
        "-c",
        "seq 1 100000 | tail -c 300000",
      );
      expect(result.stdout.slice(-7)).toBe("100000\n");
      expect(result.stdout).toHaveLength(300_000);
    });

    test("says what cannot be started", async () => {
      const result = await kubectl("", "exec", "web", "--", "no-such-program");
      expect(result.code).not.toBe(0);
      expect(result.stderr).toContain(
        'exec: "no-such-program": executable file not found in $PATH',
      );
    });

    test("says that there is no such Pod", async () => {
      const result = await kubectl("", "exec", "nobody", "--", "true");
      expect(result.stderr).toContain('pods "nobody" not found');
      expect(result.code).toBe(1);
    });

    test("finds the container's paths", async () => {
      const result = await kubectl("", "exec", "web", "--", "ls", "/app");
      expect(result.stdout).toBe("main.cjs\n");
    });
  });

  test("exec -t runs the command on a terminal of the size told", async () => {
    // kubectl itself wants a terminal to pass its size on; script(1) gives it one. The size comes a moment after the start.
    const command =
      "stty rows 33 cols 77; kubectl exec -it web -- sh -c 'for i in $(seq 100); do stty size | grep -q 33 && break; sleep 0.1; done; test -t 0 && stty size; exit 4'";
    const result = await new Promise<{ stdout: string; code: number }>((resolve) => {
      const env = { PATH: process.env.PATH ?? "", HOME: directory, KUBECONFIG: harness.kubeconfig };
      const child = execFile(
        "script",
        ["-qefc", command, "/dev/null"],
        { env, timeout: 30_000 },
        (error, stdout) => resolve({ stdout, code: error ? Number(error.code ?? -1) : 0 }),
      );
      child.stdin?.on("error", () => {});
    });
    expect(result.stdout).toContain("33 77");
    expect(result.code).toBe(4);
  });

  test("cp copies files and directories both ways", async () => {
    const local = path.join(directory, "local");
    mkdirSync(path.join(local, "sub"), { recursive: true });
    const content = "x".repeat(3_000_000);
    writeFileSync(path.join(local, "big.txt"), content);
    writeFileSync(path.join(local, "sub", "a, b & c.txt"), "small");
    await harness.kubectl("cp", local, "web:/data/copied");
    const listed = await harness.kubectl("exec", "web", "--", "find", "/data/copied", "-type", "f");
    expect(listed.trim().split("\n")).toHaveLength(2);
    const back = path.join(directory, "back");
    await harness.kubectl("cp", "web:/data/copied", back);
    expect(readFileSync(path.join(back, "big.txt"), "utf8")).toBe(content);
    expect(readFileSync(path.join(back, "sub", "a, b & c.txt"), "utf8")).toBe("small");
    const one = path.join(directory, "one.txt");
    await harness.kubectl("cp", "web:/data/copied/sub/a, b & c.txt", one);
    expect(readFileSync(one, "utf8")).toBe("small");
  });

  test("a command ends when the client that started it is gone", async () => {
    const env = { PATH: process.env.PATH ?? "", HOME: directory, KUBECONFIG: harness.kubeconfig };
    const script = "echo $$; sleep 1000";
    const child = spawn("kubectl", ["exec", "web", "--", "sh", "-c", script], { env });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    await expect.poll(() => output, patience).toMatch(/^\d+\n$/);
    const pid = Number(output);
    child.kill("SIGKILL");
    await expect.poll(() => isThere(pid), patience).toBe(false);
  });

  test("attach shows what the container writes from now on", async () => {
    const env = { PATH: process.env.PATH ?? "", HOME: directory, KUBECONFIG: harness.kubeconfig };
    const child = spawn("kubectl", ["attach", "web"], { env });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    await expect.poll(() => output, patience).toContain("tick\ntick\n");
    child.kill();
  });

  test("attach -i writes to a container that keeps its input open", async () => {
    await startPod("echo", image, { args: ["echo"], stdin: true });
    const env = { PATH: process.env.PATH ?? "", HOME: directory, KUBECONFIG: harness.kubeconfig };
    for (const word of ["one", "two"]) {
      const child = spawn("kubectl", ["attach", "-i", "echo"], { env });
      let output = "";
      child.stdout.on("data", (chunk) => (output += chunk));
      child.stdin.write(`${word}\n`);
      await expect.poll(() => output, patience).toContain(`got ${word}\n`);
      child.kill();
    }
  });

  test("attach -i ends the input of a container whose input is for one", async () => {
    await startPod("once", image, { args: ["echo"], stdin: true, stdinOnce: true });
    const { stdout, code } = await run("word\n", "attach", "-i", "once");
    expect(stdout).toContain("got word\n");
    expect(code).toBe(0);
    await expect
      .poll(() =>
        harness.kubectl(
          "get",
          "pod",
          "once",
          "-o",
          "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}",
        ),
      )
      .toBe("7");
  });

  test.each([
    ["over WebSockets", "true"],
    ["over SPDY", "false"],
  ])("port-forward %s carries connections side by side", async (_protocol, webSockets) => {
    const env = {
      PATH: process.env.PATH ?? "",
      HOME: directory,
      KUBECONFIG: harness.kubeconfig,
      KUBECTL_PORT_FORWARD_WEBSOCKETS: webSockets,
    };
    const [http, echo, nobody] = [await freePort(), await freePort(), await freePort()];
    const ports = [`${http}:8080`, `${echo}:9090`, `${nobody}:7070`];
    const child = spawn("kubectl", ["port-forward", "pod/web", ...ports], { env });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    try {
      await expect.poll(() => output, patience).toContain(`:${nobody} -> 7070`);
      const answers = await Promise.all(
        [0, 10, 1_000_000, 5_000_000].map(async (size) => {
          const body = "y".repeat(size);
          const answer = await fetch(`http://127.0.0.1:${http}/`, { method: "POST", body });
          return answer.text();
        }),
      );
      expect(answers).toEqual(["hello 0", "hello 10", "hello 1000000", "hello 5000000"]);
      await expect(fetch(`http://127.0.0.1:${nobody}/`)).rejects.toThrow();
      await expect.poll(() => output).toContain("ECONNREFUSED");
    } finally {
      child.kill();
    }
  });

  test("the JavaScript client runs commands and hears how they end", async () => {
    const exec = new Exec(clientConfig());
    const [stdout, stderr] = [collector(), collector()];
    const status = await new Promise<V1Status>((resolve, reject) => {
      const command = ["sh", "-c", "cat; echo oops >&2; exit 5"];
      const input = Readable.from(["from the client"]);
      exec
        .exec("default", "web", "main", command, stdout, stderr, input, false, resolve)
        .catch(reject);
    });
    expect(stdout.text).toBe("from the client");
    expect(stderr.text).toBe("oops\n");
    expect(status.details?.causes).toEqual([{ reason: "ExitCode", message: "5" }]);
  });

  test("the JavaScript client forwards a port", async () => {
    const forward = new PortForward(clientConfig());
    const [output, errors] = [collector(), collector()];
    const input = new PassThrough();
    await forward.portForward("default", "web", [8080], output, errors, input);
    input.write("GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n");
    await expect.poll(() => output.text).toContain("hello 0");
    expect(errors.text).toBe("");
  });
});

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function clientConfig(): KubeConfig {
  const config = new KubeConfig();
  config.loadFromFile(harness.kubeconfig);
  return config;
}

/** Keeps what is written to it. */
function collector(): Writable & { text: string } {
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      collected.text += chunk.toString();
      done();
    },
  });
  const collected = Object.assign(stream, { text: "" });
  return collected;
}
