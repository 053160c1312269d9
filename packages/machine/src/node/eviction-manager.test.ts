import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { ManualClock, type Node, type Pod, resources, silentLogger } from "@spry/kube";
import { expect, test } from "vitest";
import { eventually, startMachine, startRegistry, temporaryDirectory } from "../testing.ts";
import { type DiskSpace } from "./disk-space.ts";
import { EvictionManager } from "./eviction-manager.ts";
import { ImageStore } from "./images.ts";

const gib = 1024 ** 3;
const disk = (freePercent: number): DiskSpace => ({
  capacity: 10 * gib,
  available: Math.floor((10 * gib * freePercent) / 100),
});

async function watchedDisk() {
  const registry = await startRegistry();
  const clock = new ManualClock();
  const dir = temporaryDirectory();
  const images = new ImageStore({ dir, mirrors: registry.mirrors, clock, log: silentLogger });
  await images.open();
  const state = { space: disk(50), evicted: [] as string[], changes: 0 };
  const inUse = new Set<string>();
  const named = new Set<string>();
  const pods: { pod: Pod; sandbox: { dir: string }; evict(message: string): boolean }[] = [];
  const manager = new EvictionManager({
    dir,
    measure: () => Promise.resolve(state.space),
    images,
    imagesInUse: () => inUse,
    imagesNamed: () => Promise.resolve(named),
    pods: () => pods,
    onChange: () => state.changes++,
    clock,
    log: silentLogger,
  });
  const podDirs: string[] = [];
  const addPod = (name: string, bytes: number, spec: Partial<Pod["spec"]> = {}) => {
    const sandbox = { dir: temporaryDirectory() };
    podDirs.push(sandbox.dir);
    const container = path.join(sandbox.dir, "containers", "main");
    mkdirSync(container, { recursive: true });
    writeFileSync(path.join(container, "0.log"), "x".repeat(bytes));
    const pod: Pod = {
      metadata: { namespace: "default", name },
      spec: { containers: [{ name: "main" }], ...spec },
    };
    let isEnded = false;
    const evict = (message: string) => {
      if (!isEnded) state.evicted.push(`${name}: ${message}`);
      return isEnded ? false : (isEnded = true);
    };
    pods.push({ pod, sandbox, evict });
  };
  const pull = async (name: string) =>
    images.pull(await registry.push(name, { a: name }), { namespaceUid: "someone" });
  return { state, manager, clock, inUse, named, addPod, pull, podDirs };
}

test.each([
  { name: "84 % in use: images stay", free: 16, gone: [] },
  { name: "85 % in use: the longest unused goes, until 80 %", free: 15, gone: ["old"] },
])("$name", async ({ free, gone }) => {
  const { state, manager, clock, inUse, pull } = await watchedDisk();
  const used = await pull("used:1");
  inUse.add(used.digest);
  const old = await pull("old:1");
  await clock.advance(60_000);
  const newer = await pull("newer:1");
  await clock.advance(90_000);
  state.space = disk(free);
  await manager.collectImages();
  const left = { used, old, newer };
  const missing = Object.entries(left).filter(([, { rootDir }]) => !existsSync(rootDir));
  expect(missing.map(([name]) => name)).toEqual(gone);
});

test("a nearly full disk: unused images go first, then a Pod at each look", async () => {
  const { state, manager, inUse, addPod, pull } = await watchedDisk();
  const [used, unused] = [await pull("used:1"), await pull("unused:1")];
  inUse.add(used.digest);
  addPod("critical", 100_000, { priority: 2_000_000_000, containers: [{ name: "main" }] });
  addPod("important", 100_000, { priority: 1000, containers: [{ name: "main" }] });
  addPod("small", 8192);
  addPod("large", 40_960);
  const requests = { "ephemeral-storage": "1Gi" };
  addPod("modest", 40_960, { containers: [{ name: "main", resources: { requests } }] });
  await manager.check();
  expect([existsSync(unused.rootDir), state.evicted]).toEqual([true, []]);
  state.space = disk(4);
  for (let i = 0; i < 6; i++) await manager.check();
  expect([existsSync(used.rootDir), existsSync(unused.rootDir)]).toEqual([true, false]);
  expect(state.evicted.map((text) => text.split(":")[0])).toEqual([
    "large",
    "small",
    "important",
    "modest",
  ]);
  expect(state.evicted[0]).toBe(
    "large: The node was low on resource: ephemeral-storage. Threshold quantity: 512Mi, available: 429496729. Container main was using 40Ki, request is 0, has larger consumption of ephemeral-storage. ",
  );
});

test("pressure lasts for five minutes after there is room again", async () => {
  const { state, manager, clock } = await watchedDisk();
  state.space = disk(1);
  await manager.check();
  state.space = disk(50);
  await clock.advance(299_000);
  await manager.check();
  expect([manager.hasDiskPressure, state.changes]).toEqual([true, 1]);
  await clock.advance(1_000);
  await manager.check();
  expect([manager.hasDiskPressure, state.changes]).toEqual([false, 2]);
});

test("a Pod is evicted as a kubelet does it, and others wait or are rejected", async () => {
  let space = disk(50);
  const machine = await startMachine({ measureDisk: () => Promise.resolve(space) });
  const { client, registry } = machine;
  const idle = { "app/main.cjs": "console.log('up'); setInterval(() => {}, 1000);" };
  const image = await registry.push("app:1", idle, { Entrypoint: ["node", "/app/main.cjs"] });
  const create = (name: string, spec: Partial<Pod["spec"]> = {}) =>
    client.create(resources.pods, {
      metadata: { namespace: "default", name },
      spec: { ...spec, containers: [{ name: "main", image }] },
    });
  const statusOf = async (name: string) =>
    (await client.get(resources.pods, { namespace: "default", name })).status;
  await create("running");
  await eventually(async () =>
    expect(await statusOf("running")).toMatchObject({ phase: "Running" }),
  );
  await machine.node.stop({ pods: "leave" });
  space = disk(1);
  machine.restartNode();
  await eventually(async () =>
    expect(await statusOf("running")).toMatchObject({
      phase: "Failed",
      reason: "Evicted",
      message: expect.stringContaining(
        "The node was low on resource: ephemeral-storage. ",
      ) as string,
      conditions: expect.arrayContaining([
        expect.objectContaining({ type: "DisruptionTarget", reason: "TerminationByKubelet" }),
      ]) as unknown,
      containerStatuses: [{ state: { terminated: {} } }],
    }),
  );
  await eventually(async () => {
    const node = await client.get<Node>(resources.nodes, { name: "here" });
    expect(node.spec?.taints).toEqual([
      { key: "node.kubernetes.io/disk-pressure", effect: "NoSchedule" },
    ]);
    expect(node.status?.conditions).toContainEqual(
      expect.objectContaining({ type: "DiskPressure", status: "True" }),
    );
  });
  await create("waiting");
  await create("bound", { nodeName: "here" });
  await eventually(async () => {
    expect(await statusOf("bound")).toMatchObject({
      phase: "Failed",
      reason: "Evicted",
      message: "The node had condition: [DiskPressure]. ",
    });
    expect((await statusOf("waiting"))?.conditions).toContainEqual(
      expect.objectContaining({ type: "PodScheduled", status: "False", reason: "Unschedulable" }),
    );
  });
});

test.each([
  {
    name: "more than the limit of its containers",
    spec: {
      containers: [{ name: "main", resources: { limits: { "ephemeral-storage": "64Ki" } } }],
    },
    why: "Pod ephemeral local storage usage exceeds the total limit of containers 64Ki. ",
  },
  {
    name: "more than the limit of one container",
    spec: {
      containers: [
        { name: "main", resources: { limits: { "ephemeral-storage": "64Ki" } } },
        { name: "other", resources: { limits: { "ephemeral-storage": "1Mi" } } },
      ],
    },
    why: 'Container main exceeded its local ephemeral storage limit "64Ki". ',
  },
  {
    name: "more than a volume's size limit",
    spec: { volumes: [{ name: "scratch", emptyDir: { sizeLimit: "64Ki" } }] },
    why: 'Usage of EmptyDir volume "scratch" exceeds the limit "64Ki". ',
  },
  { name: "less than Pods without a limit may", spec: {}, why: undefined },
])("a Pod that has written $name is given up, or not", async ({ spec, why }) => {
  const { state, manager, addPod, podDirs } = await watchedDisk();
  addPod("writer", 100_000, spec);
  const volume = path.join(podDirs[0] ?? "", "volumes", "scratch");
  mkdirSync(volume, { recursive: true });
  writeFileSync(path.join(volume, "file"), "x".repeat(100_000));
  await manager.checkLimits();
  expect(state.evicted).toEqual(why === undefined ? [] : [`writer: ${why}`]);
});

test.each([
  {
    name: "below directories that are nested too deeply",
    make: "exec 2>&-; for i in $(seq 25); do mkdir $0; cd $0; done; head -c 1000000 /dev/zero > x",
    why: "files below directories that are nested too deeply",
  },
  {
    name: "among more files than are counted",
    make: "mkdir a b; seq 1000 | sed s,^,a/, | xargs touch; for i in $(seq 501); do cp -al a b/$i; done",
    why: "more than 500000 files",
  },
])("a Pod cannot hide what it writes $name", async ({ make, why }) => {
  const { state, manager, addPod, podDirs } = await watchedDisk();
  addPod("hiding", 1000);
  const dir = path.join(podDirs[0] ?? "", "tmp");
  mkdirSync(dir);
  execFileSync("sh", ["-c", make, "d".repeat(200)], { cwd: dir });
  await manager.checkLimits();
  execFileSync("rm", ["-rf", dir]);
  expect(state.evicted).toEqual([
    `hiding: Pod ephemeral local storage has ${why}, which this node cannot count. `,
  ]);
});

test("Pods are measured at once when the disk fills fast, and otherwise every ten seconds", async () => {
  const { state, manager, clock, addPod } = await watchedDisk();
  await manager.checkLimits();
  const limits = { "ephemeral-storage": "64Ki" };
  addPod("slow", 100_000, { containers: [{ name: "main", resources: { limits } }] });
  await manager.checkLimits();
  expect(state.evicted).toHaveLength(0);
  state.space = disk(48);
  await manager.checkLimits();
  expect(state.evicted).toHaveLength(1);
  addPod("later", 100_000, { containers: [{ name: "main", resources: { limits } }] });
  await clock.advance(10_000);
  await manager.checkLimits();
  expect(state.evicted).toHaveLength(2);
});

test("a Pod that fills its disk is ended within seconds, and told why", async () => {
  const { client, registry } = await startMachine();
  const image = await registry.push("filler:1", { "app/x": "" });
  const name = "filler";
  await client.create(resources.pods, {
    metadata: { namespace: "default", name },
    spec: {
      volumes: [{ name: "scratch", emptyDir: { sizeLimit: "1Mi" } }],
      containers: [
        {
          name: "main",
          image,
          command: ["sh", "-c", `head -c 160000000 /dev/zero > "$FILE/x"; sleep 60`],
          env: [{ name: "FILE", value: "/scratch" }],
          volumeMounts: [{ name: "scratch", mountPath: "/scratch" }],
        },
      ],
    },
  });
  await eventually(async () => {
    const { status } = await client.get(resources.pods, { namespace: "default", name });
    expect(status).toMatchObject({
      phase: "Failed",
      reason: "Evicted",
      message: 'Usage of EmptyDir volume "scratch" exceeds the limit "1Mi". ',
    });
  });
});
