/** What an operator has set on a namespace is respected, and where it leaves no way the Function says so. */
import { randomBytes } from "node:crypto";
import { type Function, functions, labels } from "@spry/function";
import { getCondition, type KubeObject, type Pod, type Resource, resources } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { controllerConfig, ControllerProcess, installBase } from "../support/controllers.ts";
import { imageOf, standInForNodes } from "../support/controllers.ts";
import { RealCluster, whyNoCluster } from "../support/real-cluster.ts";

/** Elsewhere these plugins may be off, and there may be a controller. */
const reason = process.env["KUBECONFIG"]
  ? "needs a control plane without nodes and controller of its own"
  : whyNoCluster();
const cluster = new RealCluster();
const patience = { timeout: 90_000, interval: 250 };
const suffix = randomBytes(3).toString("hex");
const annotation = (name: string) => `scheduler.alpha.kubernetes.io/${name}`;

type WithSpec = KubeObject & { spec: object };
const limitRanges: Resource<WithSpec> = {
  group: "",
  version: "v1",
  kind: "LimitRange",
  plural: "limitranges",
  namespaced: true,
};

async function makeNamespace(name: string, metadata: KubeObject["metadata"] = {}): Promise<string> {
  const unique = `${name}-${suffix}`;
  await cluster.client.create(resources.namespaces, { metadata: { ...metadata, name: unique } });
  return unique;
}

/** A LimitRange; resolves when the API server goes by it, which hears of its own objects a moment later. */
async function limit(metadata: { namespace: string; name: string }, range: object): Promise<void> {
  const limits = [{ type: "Container", ...range }];
  await cluster.client.create(limitRanges, { metadata, spec: { limits } });
  const probe: Pod = {
    metadata: { namespace: metadata.namespace, name: "probe" },
    spec: { containers: [{ name: "main", image: "example.invalid/image" }] },
  };
  const limitsOfProbe = async () => {
    const { spec } = await cluster.client.create(resources.pods, probe, { dryRun: true });
    return spec?.containers[0]?.resources?.limits;
  };
  await expect.poll(limitsOfProbe, patience).toBeDefined();
}

async function create(namespace: string, name = "fn"): Promise<void> {
  const spec = { runtime: "nodejs24", source: { inline: { source: `of ${name}` } } } as const;
  await cluster.client.create<Function>(functions, { metadata: { namespace, name }, spec });
}

const condition = async (namespace: string, type: "BuildReady" | "Running", name = "fn") => {
  const { status } = await cluster.client.get(functions, { namespace, name });
  const found = getCondition(status?.conditions, type);
  return `${found?.status} ${found?.reason} ${found?.message}`;
};

async function podsOf(namespace: string, resource: "deployment" | "job"): Promise<Pod[]> {
  const ofFunction = `${labels.functionName}=fn`;
  const ofJob = "batch.kubernetes.io/job-name";
  const labelSelector = `${ofFunction},${resource === "job" ? ofJob : `!${ofJob}`}`;
  return (await cluster.client.list(resources.pods, { namespace, labelSelector })).items;
}

async function podOf(namespace: string, resource: "deployment" | "job"): Promise<Pod> {
  await expect.poll(() => podsOf(namespace, resource), patience).not.toEqual([]);
  return (await podsOf(namespace, resource))[0]!;
}

describe.skipIf(reason !== undefined)(`namespaces${reason ? ` (skipped: ${reason})` : ""}`, () => {
  const stop = new AbortController();
  const standIns: Promise<void>[] = [];
  let controller: ControllerProcess;
  /** Pods of this namespace end or run by themselves. */
  const withNodes = (namespace: string) =>
    standIns.push(standInForNodes(cluster.client, stop.signal, { namespace }));

  beforeAll(async () => {
    await cluster.start({ admissionPlugins: ["PodNodeSelector", "PodTolerationRestriction"] });
    await installBase(cluster.client);
    const kubeconfig = cluster.own?.kubeconfig ?? "";
    controller = new ControllerProcess(kubeconfig, "one", { config: controllerConfig });
    await controller.leads();
  });
  afterAll(async () => {
    await controller?.end("SIGKILL");
    stop.abort();
    await Promise.all(standIns);
    await cluster.stop();
  });

  test("a LimitRange that the build does not fit is reported; once it does, all goes on", async () => {
    const namespace = await makeNamespace("limited");
    withNodes(namespace);
    const metadata = { namespace, name: "small" };
    await limit(metadata, { max: { memory: "64Mi" } });
    await create(namespace);
    await expect
      .poll(() => condition(namespace, "BuildReady"), patience)
      .toMatch(/its Pod cannot be created: .*maximum memory usage per Container is 64Mi/);
    await cluster.client.delete(limitRanges, metadata);
    await expect
      .poll(() => condition(namespace, "Running"), patience)
      .toMatch(/^True DeploymentReady/);
  });

  test("a LimitRange's defaults are the namespace's: they stay in the Pods, and are not fought over", async () => {
    const namespace = await makeNamespace("defaults");
    withNodes(namespace);
    await limit({ namespace, name: "room" }, { default: { "ephemeral-storage": "1Gi" } });
    await create(namespace);
    await expect
      .poll(() => condition(namespace, "Running"), patience)
      .toMatch(/^True DeploymentReady/);
    const { spec } = await podOf(namespace, "deployment");
    expect(spec?.containers[0]?.resources?.limits).toMatchObject({ "ephemeral-storage": "1Gi" });
    const { metadata } = await cluster.client.get(resources.deployments, {
      namespace,
      name: "fn",
    });
    expect(metadata.generation).toBe(1);
  });

  test("a full ResourceQuota is reported for the Function's Pods; with more room they come", async () => {
    const namespace = await makeNamespace("full");
    withNodes(namespace);
    const target = { namespace, name: "little" };
    // The build's Pod has ended when the Function's is to be made: it counts no more.
    await cluster.client.create(resources.resourceQuotas, {
      metadata: target,
      spec: { hard: { pods: "1" } },
    });
    await create(namespace, "first");
    await expect
      .poll(() => condition(namespace, "Running", "first"), patience)
      .toMatch(/^True DeploymentReady/);
    await cluster.client.patch(functions, { namespace, name: "first" }, { spec: { replicas: 2 } });
    await expect
      .poll(() => condition(namespace, "Running", "first"), patience)
      .toContain("its Pods cannot be created: pods");
    expect(await condition(namespace, "Running", "first")).toContain("exceeded quota: little");
    const patch = { spec: { hard: { pods: "5" } } };
    await cluster.client.patch(resources.resourceQuotas, target, patch);
    await expect
      .poll(() => condition(namespace, "Running", "first"), patience)
      .toMatch(/^True DeploymentReady/);
  });

  test("a namespace's node selector is that of builds and Functions; that no node fits is reported", async () => {
    const selector = "spry.invalid/disk=fast";
    const namespace = await makeNamespace("selected", {
      annotations: { [annotation("node-selector")]: selector },
    });
    await create(namespace);
    const build = await podOf(namespace, "job");
    expect(build.spec?.nodeSelector).toEqual({ "spry.invalid/disk": "fast" });
    await expect
      .poll(() => condition(namespace, "BuildReady"), patience)
      .toMatch(/^Unknown \w+ .*the Pod cannot be scheduled: no nodes available/);
    withNodes(namespace);
    const { spec } = await podOf(namespace, "deployment");
    expect(spec?.nodeSelector).toEqual({ "spry.invalid/disk": "fast" });
  });

  test("a namespace's tolerations are those of builds and Functions; what it forbids is reported", async () => {
    const mine = [{ key: "spry.invalid/mine", operator: "Exists", effect: "NoSchedule" }];
    const tolerations = (list: object[]) => JSON.stringify(list);
    const namespace = await makeNamespace("tolerant", {
      annotations: { [annotation("defaultTolerations")]: tolerations(mine) },
    });
    withNodes(namespace);
    await create(namespace);
    for (const resource of ["job", "deployment"] as const) {
      const { spec } = await podOf(namespace, resource);
      expect(spec?.tolerations).toEqual(expect.arrayContaining(mine));
    }
    await expect
      .poll(() => condition(namespace, "Running"), patience)
      .toMatch(/^True DeploymentReady/);

    const strict = await makeNamespace("intolerant", {
      annotations: {
        [annotation("defaultTolerations")]: tolerations(mine),
        [annotation("tolerationsWhitelist")]: tolerations([{ ...mine[0], key: "other" }]),
      },
    });
    await create(strict);
    await expect
      .poll(() => condition(strict, "BuildReady"), patience)
      .toMatch(/its Pod cannot be created: .*tolerations/);
  });

  test("where sidecars are injected, builds stay without, or they would never end", async () => {
    const namespace = await makeNamespace("mesh", { labels: { "istio-injection": "enabled" } });
    withNodes(namespace);
    await create(namespace);
    const build = await podOf(namespace, "job");
    expect(build.metadata.annotations).toMatchObject({ "sidecar.istio.io/inject": "false" });
    const fn = await podOf(namespace, "deployment");
    expect(fn.metadata.annotations ?? {}).not.toHaveProperty(["sidecar.istio.io/inject"]);
    expect(fn.spec?.containers[0]?.image).toBe(imageOf(namespace, "fn"));
  });
});
