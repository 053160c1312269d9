import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import path from "node:path";
import {
  type Container,
  isNotFound,
  type KubeClient,
  type Pod,
  type PodSpec,
  resources,
  silentLogger,
} from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { readStat } from "./sandbox/processes.ts";
import {
  deploymentOf,
  eventually,
  HeldWatches,
  podsOf,
  registryHost,
  startMachine,
  type TestMachine,
} from "./testing.ts";

const idle = "setInterval(() => {}, 1000);";
const command = { Entrypoint: ["node", "/app/main.cjs"] };
const target = (name: string) => ({ namespace: "default", name });

async function createPod(
  { client, registry }: TestMachine,
  main: string,
  container: Partial<Container> = {},
  spec: Partial<PodSpec> = {},
): Promise<Pod> {
  const image = await registry.push("app:1", { "app/main.cjs": main }, command);
  return client.create(resources.pods, {
    metadata: { namespace: "default", name: "p", labels: { app: "p" } },
    spec: {
      terminationGracePeriodSeconds: 2,
      ...spec,
      containers: [{ name: "main", image, ...container }],
    },
  });
}

const getPod = (client: KubeClient) => client.get(resources.pods, target("p"));

function untilRunning(client: KubeClient): Promise<Pod> {
  return eventually(async () => {
    const pod = await getPod(client);
    expect(pod.status?.containerStatuses?.[0]?.state?.running).toBeDefined();
    return pod;
  });
}

async function pidOf(machine: TestMachine, pod: Pod): Promise<number> {
  const file = path.join(
    machine.dataDir,
    "pods",
    pod.metadata.uid ?? "",
    "containers/main/process.json",
  );
  return (JSON.parse(readFileSync(file, "utf8")) as { pid: number }).pid;
}

const logsOf = async (client: KubeClient, query = "") =>
  (await client.raw("GET", `/api/v1/namespaces/default/pods/p/log${query}`)).text();

const isRunning = (pid: number) => (readStat(pid)?.state ?? "Z") !== "Z";

test.each([0, 1, 2, 3])(
  "a running Pod ends when its deletion arrives together with %i other changes of it",
  async (changes) => {
    const watches = new HeldWatches();
    const machine = await startMachine({ nodeTransport: watches.through });
    const { client } = machine;
    await createPod(machine, idle);
    await untilRunning(client);
    watches.hold();
    for (let change = 1; change <= changes; change++)
      await client.patch(resources.pods, target("p"), {
        metadata: { annotations: { change: String(change) } },
      });
    await client.delete(resources.pods, target("p"));
    watches.release();
    await eventually(() => expect(getPod(client)).rejects.toSatisfy(isNotFound));
  },
);

test("the end of a Pod that was to be looked at again is tried until it succeeds", async () => {
  let failures = 0;
  const machine = await startMachine({
    nodeTransport: (transport) => async (request) => {
      if (request.method !== "DELETE" || failures++ > 0) return transport(request);
      return new Response("the disk is full", { status: 500 });
    },
  });
  const { client } = machine;
  // It cannot start, and is tried again in a second.
  const missing = { configMapRef: { name: "missing" } };
  await createPod(machine, idle, { envFrom: [missing] });
  await eventually(async () => {
    const { status } = await getPod(client);
    const reason = status?.containerStatuses?.[0]?.state?.waiting?.reason;
    expect(reason).toBe("CreateContainerConfigError");
  });
  await client.delete(resources.pods, target("p"));
  await eventually(() => expect(getPod(client)).rejects.toSatisfy(isNotFound));
  expect(failures).toBeGreaterThan(1);
});

test("a Pod does not start without a volume of which the content could not be read", async () => {
  let failures = 0;
  const machine = await startMachine({
    nodeTransport: (transport) => async (request) => {
      const isContent = new URL(request.url).pathname.endsWith("/configmaps/settings");
      if (!isContent || failures++ > 0) return transport(request);
      return new Response("the server is busy", { status: 500 });
    },
  });
  const { client } = machine;
  const metadata = { namespace: "default", name: "settings" };
  await client.create(resources.configMaps, { metadata, data: { color: "blue" } });
  const read = `console.log(require("node:fs").readFileSync(process.env.FILE, "utf8")); ${idle}`;
  await createPod(
    machine,
    read,
    {
      env: [{ name: "FILE", value: "/settings/color" }],
      volumeMounts: [{ name: "settings", mountPath: "/settings" }],
    },
    { volumes: [{ name: "settings", configMap: { name: "settings" } }] },
  );
  await eventually(async () => expect(await logsOf(client)).toBe("blue\n"));
  expect((await getPod(client)).status?.containerStatuses?.[0]?.restartCount).toBe(0);
});

test("an agent that is stopped before it has taken over a Pod ends it", async () => {
  const machine = await startMachine();
  await createPod(machine, idle);
  const pid = await pidOf(machine, await untilRunning(machine.client));
  await machine.node.stop({ pods: "leave" });
  expect(isRunning(pid)).toBe(true);
  await machine.restartNode().stop({ pods: "stop" });
  expect(isRunning(pid)).toBe(false);
});

test("a Pod runs on when the agent ends, and the next agent takes it over", async () => {
  const machine = await startMachine();
  await createPod(machine, `console.log("hello"); ${idle}`, {
    readinessProbe: { exec: { command: ["true"] } },
  });
  const before = await eventually(async () => {
    const pod = await getPod(machine.client);
    expect(pod.status?.conditions?.find(({ type }) => type === "Ready")?.status).toBe("True");
    return pod;
  });
  const pid = await pidOf(machine, before);
  await machine.node.stop({ pods: "leave" });
  expect(isRunning(pid)).toBe(true);
  machine.restartNode();
  await eventually(async () => expect(await logsOf(machine.client)).toBe("hello\n"));
  expect((await getPod(machine.client)).status?.containerStatuses).toEqual(
    before.status?.containerStatuses,
  );
  expect(await pidOf(machine, before)).toBe(pid);
  await machine.client.delete(resources.pods, target("p"), { gracePeriodSeconds: 1 });
  await eventually(() => expect(isRunning(pid)).toBe(false));
  await eventually(() => expect(readdirSync(path.join(machine.dataDir, "pods"))).toEqual([]));
});

test("a container that ended while no agent was there is reported as lost, and started again", async () => {
  const machine = await startMachine();
  await createPod(machine, idle);
  const pid = await pidOf(machine, await untilRunning(machine.client));
  await machine.node.stop({ pods: "leave" });
  process.kill(-pid, "SIGKILL");
  await eventually(() => expect(isRunning(pid)).toBe(false));
  machine.restartNode();
  await eventually(async () => {
    expect((await getPod(machine.client)).status?.containerStatuses).toMatchObject([
      {
        restartCount: 1,
        state: { running: {} },
        lastState: { terminated: { exitCode: 137, reason: "ContainerStatusUnknown" } },
      },
    ]);
  });
});

test("a Job that comes to its end while no agent is there is counted by the next one", async () => {
  const machine = await startMachine();
  const { client } = machine;
  const gate = path.join(machine.dataDir, "gate");
  const main = `
    const { existsSync, writeFileSync } = require("node:fs");
    const waiting = setInterval(() => {
      if (!existsSync(${JSON.stringify(gate)})) return;
      clearInterval(waiting);
      writeFileSync(process.env.SPRY_TERMINATION_LOG, "built");
    }, 10);`;
  const image = await machine.registry.push("app:1", { "app/main.cjs": main }, command);
  await client.create(resources.jobs, {
    metadata: target("build"),
    spec: {
      backoffLimit: 0,
      template: {
        metadata: { labels: { app: "build" } },
        spec: { restartPolicy: "Never", containers: [{ name: "main", image }] },
      },
    },
  });
  const pod = await eventually(async () => {
    const [pod] = await podsOf(client, "build");
    expect(pod?.status?.phase).toBe("Running");
    return pod as Pod;
  });
  const pid = await pidOf(machine, pod);
  await machine.node.stop({ pods: "leave" });
  writeFileSync(gate, "");
  await eventually(() => expect(isRunning(pid)).toBe(false));
  machine.restartNode();
  await eventually(async () => {
    const job = await client.get(resources.jobs, target("build"));
    expect(job.status?.conditions?.at(-1)).toMatchObject({ type: "Complete", status: "True" });
  });
  const [ended] = await podsOf(client, "build");
  expect(ended?.status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({
    exitCode: 0,
    message: "built",
  });
});

test("processes of Pods that were deleted while no agent was there are ended", async () => {
  const machine = await startMachine();
  await createPod(machine, idle);
  const pid = await pidOf(machine, await untilRunning(machine.client));
  await machine.node.stop({ pods: "leave" });
  await machine.client.delete(resources.pods, target("p"), { gracePeriodSeconds: 0 });
  expect(isRunning(pid)).toBe(true);
  machine.restartNode();
  await eventually(() => expect(isRunning(pid)).toBe(false));
  await eventually(() => expect(readdirSync(path.join(machine.dataDir, "pods"))).toEqual([]));
});

test("stopping the platform ends every process, and the next start runs them again", async () => {
  const machine = await startMachine();
  await createPod(machine, idle);
  const pid = await pidOf(machine, await untilRunning(machine.client));
  await machine.node.stop({ pods: "stop" });
  expect(isRunning(pid)).toBe(false);
  expect((await getPod(machine.client)).status).toMatchObject({
    conditions: expect.arrayContaining([
      expect.objectContaining({ type: "Ready", status: "False" }),
    ]),
    containerStatuses: [{ state: { terminated: { exitCode: 143, reason: "Error" } } }],
  });
  machine.restartNode();
  await eventually(async () => {
    const pod = await getPod(machine.client);
    expect(pod.status?.containerStatuses).toMatchObject([
      { restartCount: 1, state: { running: {} } },
    ]);
  });
});

test("a deleted Pod gets its preStop hook and SIGTERM, and then is gone with its directory", async () => {
  const machine = await startMachine();
  const { client } = machine;
  await createPod(
    machine,
    `process.on("SIGTERM", () => { console.log("bye"); setTimeout(() => process.exit(0), 100); }); console.log("up"); ${idle}`,
    {
      lifecycle: {
        preStop: { exec: { command: ["sh", "-c", "echo stopping >> $SPRY_TERMINATION_LOG"] } },
      },
    },
  );
  await untilRunning(client);
  await eventually(async () => expect(await logsOf(client)).toBe("up\n"));
  const follow = logsOf(client, "?follow=true");
  await client.delete(resources.pods, target("p"));
  expect((await getPod(client)).metadata.deletionTimestamp).toBeDefined();
  expect(await follow).toBe("up\nbye\n");
  await eventually(async () => {
    await expect(getPod(client)).rejects.toSatisfy(isNotFound);
    expect(readdirSync(path.join(machine.dataDir, "pods"))).toEqual([]);
  });
});

test("a Pod that ignores SIGTERM is killed at the end of its grace period", async () => {
  const machine = await startMachine();
  await createPod(
    machine,
    `process.on("SIGTERM", () => {}); console.log("deaf"); ${idle}`,
    {},
    { terminationGracePeriodSeconds: 1 },
  );
  await eventually(async () => expect(await logsOf(machine.client)).toContain("deaf"));
  const started = Date.now();
  await machine.client.delete(resources.pods, target("p"));
  await eventually(async () => expect(getPod(machine.client)).rejects.toSatisfy(isNotFound));
  expect(Date.now() - started).toBeGreaterThan(900);
  expect(Date.now() - started).toBeLessThan(3_000);
});

test("a container whose liveness probe fails is restarted", async () => {
  const machine = await startMachine();
  await createPod(machine, idle, {
    livenessProbe: { exec: { command: ["false"] }, periodSeconds: 1, failureThreshold: 1 },
  });
  await eventually(async () => {
    expect((await getPod(machine.client)).status?.containerStatuses?.[0]?.restartCount).toBe(1);
  });
  // Events are written in addition to all that.
  await eventually(async () => {
    const { items } = await machine.client.list(resources.events, { namespace: "default" });
    expect(items.map(({ reason }) => reason)).toEqual(
      expect.arrayContaining([
        "Scheduled",
        "Pulling",
        "Pulled",
        "Created",
        "Started",
        "Unhealthy",
        "Killing",
      ]),
    );
  });
});

test("that a container runs is written before the Events of its start: a request may wait for it", async () => {
  const machine = await startMachine();
  const running = Promise.withResolvers<number>();
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const { metadata } = await machine.client.list(resources.pods, { namespace: "default" });
  const { resourceVersion = "" } = metadata;
  const from = { namespace: "default", resourceVersion, signal: end.signal };
  void (async () => {
    for await (const { object } of machine.client.watch(resources.pods, from))
      if (object.status?.containerStatuses?.[0]?.state?.running)
        running.resolve(Number(object.metadata.resourceVersion));
  })().catch(running.reject);
  await createPod(machine, idle);
  const started = await eventually(async () => {
    const { items } = await machine.client.list(resources.events, { namespace: "default" });
    const found = items.find(({ reason }) => reason === "Started");
    expect(found).toBeDefined();
    return found;
  });
  expect(Number(started?.metadata.resourceVersion)).toBeGreaterThan(await running.promise);
});

test("a container that ignores SIGTERM gets the grace period of the probe it failed", async () => {
  const machine = await startMachine();
  await createPod(
    machine,
    `process.on("SIGTERM", () => {}); console.log("deaf"); ${idle}`,
    {
      livenessProbe: {
        exec: { command: ["false"] },
        initialDelaySeconds: 1,
        periodSeconds: 1,
        failureThreshold: 1,
        terminationGracePeriodSeconds: 1,
      },
    },
    { terminationGracePeriodSeconds: 3600 },
  );
  await eventually(async () => {
    const [status] = (await getPod(machine.client)).status?.containerStatuses ?? [];
    expect(status?.lastState?.terminated?.exitCode).toBe(137);
  });
  await machine.client.delete(resources.pods, target("p"), { gracePeriodSeconds: 0 });
});

test("init containers run one after the other; a sidecar runs alongside, and ends with the Pod's own", async () => {
  const machine = await startMachine();
  const { registry, client } = machine;
  const image = await registry.push("app:1", { "app/main.cjs": idle }, command);
  const sh = (name: string, script: string, more: Partial<Container> = {}): Container => ({
    name,
    image,
    command: ["sh", "-c", script],
    volumeMounts: [{ name: "scratch", mountPath: "/scratch" }],
    env: [{ name: "DIR", value: "/scratch" }],
    ...more,
  });
  await client.create(resources.pods, {
    metadata: { namespace: "default", name: "p" },
    spec: {
      restartPolicy: "Never",
      volumes: [{ name: "scratch", emptyDir: {} }],
      initContainers: [
        sh("first", "echo first >> $DIR/log"),
        sh("sidecar", "echo sidecar >> $DIR/log; exec sleep 60", { restartPolicy: "Always" }),
        sh("second", "echo second >> $DIR/log"),
      ],
      containers: [
        sh(
          "main",
          "until grep -q sidecar $DIR/log; do sleep 0.05; done; sort $DIR/log | tr '\\n' ' '",
        ),
      ],
    },
  });
  const pod = await eventually(async () => {
    const pod = await getPod(client);
    expect(pod.status?.phase).toBe("Succeeded");
    return pod;
  });
  expect(await logsOf(client, "?container=main")).toBe("first second sidecar ");
  expect(pod.status?.conditions?.find(({ type }) => type === "Initialized")).toMatchObject({
    status: "True",
  });
  await eventually(async () =>
    expect(
      (await getPod(client)).status?.initContainerStatuses?.map(({ state }) =>
        Object.keys(state ?? {}),
      ),
    ).toEqual([["terminated"], ["terminated"], ["terminated"]]),
  );
});

test("a changed ConfigMap reaches the files of a running Pod", async () => {
  const machine = await startMachine();
  const { client } = machine;
  await client.create(resources.configMaps, { metadata: target("c"), data: { greeting: "hello" } });
  await createPod(
    machine,
    `const read = () => require("node:fs").readFileSync(process.env.FILE, "utf8");
     let last; setInterval(() => { if (read() !== last) console.log(last = read()); }, 10);`,
    {
      env: [{ name: "FILE", value: "/config/greeting" }],
      volumeMounts: [{ name: "config", mountPath: "/config" }],
    },
    { volumes: [{ name: "config", configMap: { name: "c" } }] },
  );
  await eventually(async () => expect(await logsOf(client)).toBe("hello\n"));
  await client.patch(resources.configMaps, target("c"), { data: { greeting: "goodbye" } });
  await eventually(async () => expect(await logsOf(client)).toBe("hello\ngoodbye\n"));
});

test("a Pod that is active for too long is ended", async () => {
  const machine = await startMachine();
  await createPod(machine, idle, {}, { activeDeadlineSeconds: 1 });
  await eventually(async () => {
    expect((await getPod(machine.client)).status).toMatchObject({
      phase: "Failed",
      reason: "DeadlineExceeded",
    });
  });
});

test("a Pod's status is written once per change", async () => {
  const machine = await startMachine();
  const { client } = machine;
  const seen: string[] = [];
  const watching = new AbortController();
  const watch = (async () => {
    for await (const { type, object } of client.watch(resources.pods, {
      namespace: "default",
      signal: watching.signal,
    })) {
      const pod = object;
      const ready = pod.status?.conditions?.find((each) => each.type === "Ready")?.status ?? "-";
      if (type !== "BOOKMARK")
        seen.push(`${type} ${pod.spec?.nodeName ?? "-"} ${pod.status?.phase} ${ready}`);
    }
  })().catch(() => {});
  // The image is there already for the second Pod.
  await createPod(machine, "process.exit(0)", {}, { restartPolicy: "Never" });
  await eventually(async () => expect((await getPod(client)).status?.phase).toBe("Succeeded"));
  await client.delete(resources.pods, target("p"), { gracePeriodSeconds: 0 });
  await eventually(() => expect(seen.at(-1)).toMatch(/^DELETED/));
  seen.length = 0;
  const image = await machine.registry.push(
    "web:1",
    { "app/main.cjs": `require("fs").writeSync(3, "ready\\n"); ${idle}` },
    command,
  );
  await machine.client.create(resources.deployments, deploymentOf("web", image));
  await eventually(async () =>
    expect(
      (await podsOf(client, "web"))[0]?.status?.conditions?.find(({ type }) => type === "Ready")
        ?.status,
    ).toBe("True"),
  );
  await new Promise((resolve) => setTimeout(resolve, 200));
  watching.abort();
  await watch;
  expect(seen).toEqual([
    "ADDED - Pending -",
    "MODIFIED here Pending -",
    "MODIFIED here Pending False",
    "MODIFIED here Running False",
    "MODIFIED here Running True",
  ]);
});

test("a Pod whose start was under way when the agent died starts after the others, and says why it waits", async () => {
  const warnings: unknown[] = [];
  const log = { ...silentLogger, warn: (fields: object) => void warnings.push(fields) };
  const machine = await startMachine({ log });
  const { client, registry } = machine;
  // A registry that never answers: the agent dies in the middle of the start.
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => silent.close().closeAllConnections());
  const { port } = silent.address() as AddressInfo;
  registry.mirrors["slow.test"] = { url: `http://127.0.0.1:${port}` };
  const image = await registry.push("app:1", { "app/main.cjs": idle }, command);
  const [, reference = ""] = image.split("/app");
  const create = (name: string, from: string) =>
    client.create(resources.pods, {
      metadata: target(name),
      spec: { containers: [{ name: "main", image: from }] },
    });
  const suspect = await create("suspect", `slow.test/app${reference}`);
  const notes = path.join(machine.dataDir, "starting");
  const note = path.join(notes, suspect.metadata.uid ?? "");
  const text = await eventually(() => readFileSync(note, "utf8"));
  // What a kill leaves: an agent that is stopped takes its notes back.
  await machine.node.stop({ pods: "leave" });
  expect(readdirSync(notes)).toEqual([]);
  writeFileSync(note, text);
  registry.mirrors["slow.test"] = registry.mirrors[registryHost] as { url: string };
  await create("other", image);
  machine.restartNode();
  const message =
    "the platform ended while this Pod was being started: it is tried after all others, alone";
  const pod = (name: string) => client.get(resources.pods, target(name));
  const stateOf = async (name: string) => (await pod(name)).status?.containerStatuses?.[0]?.state;
  await eventually(async () =>
    expect((await stateOf("suspect"))?.waiting).toEqual({ reason: "StartDelayed", message }),
  );
  expect(warnings).toContainEqual({
    pod: "default/suspect",
    uid: suspect.metadata.uid,
    deaths: 1,
  });
  await eventually(async () => expect((await stateOf("suspect"))?.running).toBeDefined());
  expect((await stateOf("other"))?.running).toBeDefined();
  await eventually(() => expect(readdirSync(notes)).toEqual([]));
});
