/** A program in a Pod that talks to the API server as its ServiceAccount, with the official JavaScript client. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import {
  assembleImage,
  createLayer,
  createRegistry,
  parseImageName,
  pushImage,
  RegistryClient,
} from "@spry/image";
import { type KubeObject, resources } from "@spry/kube";
import {
  createNode,
  type MachineNode,
  openOciSandbox,
  processSandbox,
  type Sandbox,
  startControllers,
} from "@spry/machine";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Harness, startHarness } from "./harness.ts";

const startupMs = 60_000;
const registryHost = "registry.test";
const accountPath = "/var/run/secrets/kubernetes.io/serviceaccount";

/** What a person writes: the same for a cluster, and for both sandboxes. */
const program = `
  import { AuthenticationV1Api, CoreV1Api, KubeConfig } from "@kubernetes/client-node";
  const told = {};
  for (const [way, load] of Object.entries({
    cluster: (config) => config.loadFromCluster(process.env.SPRY_ROOT),
    default: (config) => config.loadFromDefault(),
  })) {
    const config = new KubeConfig();
    load(config);
    const review = await config.makeApiClient(AuthenticationV1Api).createSelfSubjectReview({ body: {} });
    const core = config.makeApiClient(CoreV1Api);
    const list = await core.listNamespacedConfigMap({ namespace: "default" });
    const refused = await core.listNamespacedSecret({ namespace: "default" }).catch((error) => error.code);
    const user = review.status.userInfo;
    told[way] = { user: user.username, pod: user.extra["authentication.kubernetes.io/pod-name"], refused,
      configMaps: list.items.map((each) => each.metadata.name), namespace: config.getContextObject(config.currentContext).namespace };
  }
  console.log(JSON.stringify(told));
`;

function hasRunc(): boolean {
  try {
    execFileSync("runc", ["--version"], { stdio: "ignore" });
    return process.getuid?.() === 0;
  } catch {
    return false;
  }
}

const kinds: [string, (dataDir: string) => Promise<Sandbox> | Sandbox][] = [
  ["process", (dataDir) => processSandbox({ dataDir })],
  ["oci", (dataDir) => openOciSandbox({ dataDir })],
];

const here = kinds.filter(([kind]) => kind === "process" || hasRunc());
if (here.length < kinds.length) test.skip("in the oci sandbox (skipped: needs root and runc)");

describe.each(here)("in the %s sandbox", (_, open) => {
  let harness: Harness;
  let node: MachineNode | undefined;
  let image: string;
  const ending = new AbortController();
  const closers: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    harness = await startHarness({ kubelet: () => node?.kubelet });
    const { client, directory } = harness;
    chmodSync(directory, 0o755);
    const dataDir = path.join(directory, "node");
    mkdirSync(dataDir);
    const registry = createRegistry({ dir: path.join(directory, "registry") });
    const server = await registry.listen({ host: "127.0.0.1", port: 0 });
    closers.push(() => server.close().then(() => registry.close()));
    const mirror = { url: `http://127.0.0.1:${server.port}` };
    image = await pushProgram(new RegistryClient({ resolve: () => mirror }));
    const { hostname, port } = new URL(harness.url);
    const sandbox = await open(dataDir);
    // As the platform does: a Pod with a network of its own has another loopback.
    await sandbox.offer(Number(port));
    node = createNode({
      client,
      name: "here",
      dataDir,
      sandbox,
      mirrors: { [registryHost]: mirror },
      apiServer: { host: hostname, port: Number(port) },
    });
    const running = node.run(ending.signal);
    closers.push(async () => {
      await node?.stop({ pods: "stop" });
      ending.abort();
      await running;
    });
    const rootCa = readFileSync(path.join(directory, "ca.crt"), "utf8");
    await startControllers({ client, rootCa, signal: ending.signal });
    const rbac = { group: "rbac.authorization.k8s.io", version: "v1", namespaced: true };
    await client.create({ ...rbac, plural: "rolebindings", kind: "RoleBinding" }, {
      metadata: { namespace: "default", name: "viewers" },
      roleRef: { kind: "ClusterRole", name: "view", apiGroup: rbac.group },
      subjects: [{ kind: "ServiceAccount", name: "default" }],
    } as KubeObject);
  }, startupMs);
  afterAll(async () => {
    for (const close of closers.reverse()) await close();
    await harness?.close();
  });

  test(
    "the official client finds the API server and its token, and has its roles",
    { timeout: startupMs },
    async () => {
      const { client } = harness;
      await client.create(resources.pods, {
        metadata: { namespace: "default", name: "asker" },
        spec: { restartPolicy: "Never", containers: [{ name: "main", image }] },
      });
      const ended = await vi.waitFor(
        async () => {
          const pod = await client.get(resources.pods, { namespace: "default", name: "asker" });
          expect(pod.status?.phase, JSON.stringify(pod.status)).toMatch(/Succeeded|Failed/);
          return pod;
        },
        { timeout: 30_000, interval: 50 },
      );
      const mount = ended.spec?.containers[0]?.volumeMounts?.[0];
      expect(mount).toMatchObject({ mountPath: accountPath, readOnly: true });
      const log = await client.raw("GET", "/api/v1/namespaces/default/pods/asker/log");
      const text = await log.text();
      const told = {
        user: "system:serviceaccount:default:default",
        pod: ["asker"],
        refused: 403,
        configMaps: ["kube-root-ca.crt"],
        namespace: "default",
      };
      expect(text).toBe(`${JSON.stringify({ cluster: told, default: told })}\n`);
    },
  );
});

/** An image of the program and its client, in one file. */
async function pushProgram(client: RegistryClient): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: program, resolveDir: import.meta.dirname },
    bundle: true,
    platform: "node",
    format: "esm",
    banner: {
      js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
    },
    write: false,
    logLevel: "error",
  });
  const content = Buffer.from(outputFiles[0]?.contents ?? []);
  const image = assembleImage({
    layers: [await createLayer([{ path: "app/main.mjs", content }])],
    config: {
      Entrypoint: ["node", "/app/main.mjs"],
      Labels: { "io.spry.interpreter": `node@${process.versions.node.split(".")[0]}` },
    },
  });
  const target = parseImageName(`${registryHost}/asker:1`);
  const { digest } = await pushImage(client, image, target);
  return `${registryHost}/asker@${digest}`;
}
