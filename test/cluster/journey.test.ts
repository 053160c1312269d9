/** The whole journey on a real cluster: install, Functions, edits under load, configuration, uninstall. */
import { randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import {
  type Function,
  functions,
  functionsV1alpha1,
  gitRepositories,
  names,
} from "@spry/function";
import { type Serverless, serverlesses } from "@spry/controller";
import {
  Informer,
  type KubeObject,
  type Namespace,
  type Pod,
  type Resource,
  resources,
} from "@spry/kube";
import { GitHttpServer, TestRepository } from "@spry/source/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  clusterRules,
  controllerAccount,
  namespaceRules,
  onDemandRules,
} from "../../packages/cli/src/install/access.ts";
import { gitWebhookName } from "../../packages/cli/src/install/controller.ts";
import {
  gatewayExposureRules,
  gatewayName,
  gatewayNamespaceRules,
  gatewayRules,
} from "../../packages/cli/src/install/gateway.ts";
import { findProgram } from "../../packages/machine/src/network/pods/commands.ts";
import { startNpmRegistry } from "../../packages/image/src/testing/npm-registry.ts";
import {
  serveMetrics,
  usageAnnotation,
  withdrawMetrics,
} from "../differential/sequences/metrics-server.ts";
import { callUntil, connections, serviceUrl } from "../support/client-pod.ts";
import { InstalledCluster, whyNoInstallation } from "../support/installed-cluster.ts";
import { functionManifest, root, run } from "../support/platform.ts";
import { type PolicyAgent } from "../support/policy-agent.ts";
import { replaceOwnPods } from "../support/replacement.ts";
import { rightOf, rightsIn, rightsMissing, rightsUnused, rightsUsed } from "../support/rights.ts";
import { helm } from "../../tools/helm/helm.ts";

const reason = whyNoInstallation();
const noAgent = findProgram("nft") ? undefined : "nft (nftables) is not there";
const cluster = new InstalledCluster();
const system = "kyma-system";
const chart = path.join(root, "deploy/helm/spry");
const namespace = `shop-${randomBytes(3).toString("hex")}`;
const patience = { timeout: 60_000, interval: 200 };

function manifest(name: string, source: string, spec: Record<string, unknown> = {}): Function {
  return JSON.parse(functionManifest(name, source, spec, { namespace })) as Function;
}
const answering = (text: string) =>
  `module.exports = { main: async () => ${JSON.stringify(text)} };`;
const apply = (fn: Function) => cluster.client.apply(functions, fn, { fieldManager: "test" });
const gatewayValues = () => path.join(cluster.scratch, "gateway.json");
const install = () => cluster.install("--values", gatewayValues());
const configuration = () =>
  cluster.client.get<Serverless>(serverlesses, { namespace: system, name: "default" });
const configure = (spec: Serverless["spec"]) =>
  cluster.client.patch(serverlesses, { namespace: system, name: "default" }, { spec });

/** As a Git server tells of one, from within the cluster. */
async function push(repository: string, token: string): Promise<string> {
  await cluster.client.create(resources.secrets, {
    metadata: { namespace, name: "serverless-git-webhook" },
    data: { token: Buffer.from(token).toString("base64") },
  });
  const url = `http://${gitWebhookName}.${system}.svc.cluster.local/git/${namespace}`;
  const body = JSON.stringify({ repository, ref: "refs/heads/main" });
  const request = { method: "POST", headers: { "x-gitlab-token": token }, body };
  const script = `fetch("${url}", ${JSON.stringify(request)}).then((r) => r.text()).then((t) => console.log(t))`;
  return cluster.inClient(namespace, script);
}

const callInlineUntil = (text: string) =>
  callUntil(cluster, namespace, serviceUrl(namespace, "inline"), text);

const podsOfInline =
  "serverless.kyma-project.io/function-name=inline,serverless.kyma-project.io/resource=deployment";

const quotas: Resource<KubeObject & { spec: object }> = {
  group: "",
  version: "v1",
  kind: "ResourceQuota",
  plural: "resourcequotas",
  namespaced: true,
};

describe.skipIf(reason !== undefined)(`journey${reason ? ` (skipped: ${reason})` : ""}`, () => {
  let before: string[];
  let agent: PolicyAgent | undefined;
  beforeAll(async () => {
    await cluster.start();
    // All of the journey goes the ways that the policies leave open.
    agent = noAgent ? undefined : await cluster.enforcePolicies();
    writeFileSync(gatewayValues(), JSON.stringify({ gateway: { enabled: true } }));
    before = await cluster.inventory();
  }, 300_000);
  afterAll(() => cluster.stop(), 60_000);

  test("spry install brings up controller and registry, and says what is in effect", async () => {
    const { code, stderr } = await install();
    expect(stderr).toContain(`Spry is installed in ${system}`);
    expect(code).toBe(0);
    await expect.poll(async () => (await configuration()).status?.state, patience).toBe("Ready");
    const { status } = await configuration();
    expect(status).toMatchObject({ served: "True", dockerRegistry: "internal" });
    const conditions = status?.conditions?.map(({ type, status: value }) => `${type}=${value}`);
    expect(conditions).toEqual(["Configured=True", "Installed=True"]);
  }, 240_000);

  test("the Pods of Spry and of Functions are restricted, and those of Functions are enforced to be", async () => {
    const level = { "pod-security.kubernetes.io/enforce": "restricted" };
    const { metadata } = await cluster.client.get(resources.namespaces, { name: system });
    expect(metadata.labels).toMatchObject(level);
    await cluster.client.create<Namespace>(resources.namespaces, {
      metadata: { name: namespace, labels: level },
    });
    await cluster.startClient(namespace);
  });

  test("an inline Function, one with npm dependencies and one from Git answer through their Services", async () => {
    const npm = await startNpmRegistry();
    const registry = await cluster.share(Number(npm.address.split(":")[1]));
    await cluster.client.create(resources.secrets, {
      metadata: { namespace, name: "serverless-package-registry-config" },
      data: { ".npmrc": Buffer.from(`registry=http://${registry}/\n`).toString("base64") },
    });
    using repository = new TestRepository();
    repository.commit({ "handler.js": answering("from Git") });
    await using server = await GitHttpServer.start({ root: repository.root });
    const git = await cluster.share(Number(new URL(server.origin).port));

    const dependencies = JSON.stringify({ dependencies: { greeting: "1.2.3" } });
    const withPackage = `const text = require("greeting"); module.exports = { main: () => text };`;
    await apply(manifest("inline", answering("first")));
    await apply(manifest("packages", withPackage, { dependencies }));
    const fromGit = manifest("git", "");
    const url = `http://${git}/shop.git`;
    fromGit.spec.source = { gitRepository: { url, reference: "main", baseDir: "/" } };
    await apply(fromGit);
    for (const name of ["inline", "packages", "git"]) await cluster.untilRunning(namespace, name);
    expect(await cluster.call(namespace, "inline")).toBe("first");
    expect(await cluster.call(namespace, "packages")).toBe("hello");
    expect(await cluster.call(namespace, "git")).toBe("from Git");

    repository.commit({ "handler.js": answering("committed later") });
    expect(await push(url, "of the webhook")).toBe('{"functions":["git"]}');
    const patient = { ...patience, timeout: 120_000 };
    await expect.poll(() => cluster.call(namespace, "git"), patient).toBe("committed later");
  }, 300_000);

  test("edits under load: every request is answered, the last edit wins", async () => {
    const load = callInlineUntil("edit 3");
    for (let edit = 1; edit <= 3; edit++) {
      await apply(manifest("inline", answering(`edit ${edit}`)));
      await cluster.untilRunning(namespace, "inline");
    }
    const { ok, bad } = await load;
    expect(bad).toEqual([]);
    expect(ok).toBeGreaterThan(20);
  }, 300_000);

  test("what does not load changes nothing for callers, and the version before is back at once", async () => {
    await apply(manifest("inline", "module.exports = { main: ;"));
    const running = async () => {
      const { status } = await cluster.client.get(functions, { namespace, name: "inline" });
      return status?.conditions?.find(({ type }) => type === "Running")?.message;
    };
    await expect
      .poll(running, { ...patience, timeout: 120_000 })
      .toContain("SyntaxError: Unexpected token ';'");
    expect(await cluster.call(namespace, "inline")).toBe("edit 3");
    await apply(manifest("inline", answering("edit 2")));
    await cluster.untilRunning(namespace, "inline");
    await expect.poll(() => cluster.call(namespace, "inline"), patience).toBe("edit 2");
  }, 300_000);

  test("a range of replicas brings an autoscaler, and its end takes it away", async () => {
    const target = { namespace, name: "inline" };
    const autoscaler = async () => {
      const { items } = await cluster.client.list(resources.horizontalPodAutoscalers, {
        namespace,
      });
      return items.map(({ spec }) => `${spec?.minReplicas}-${spec?.maxReplicas}`);
    };
    const scale = (scaleConfig: object | null) =>
      cluster.client.patch(functions, target, { spec: { scaleConfig } });
    await scale({ minReplicas: 1, maxReplicas: 2 });
    await expect.poll(autoscaler, patience).toEqual(["1-2"]);
    await scale({ minReplicas: 1, maxReplicas: 3 });
    await expect.poll(autoscaler, patience).toEqual(["1-3"]);
    await scale(null);
    await expect.poll(autoscaler, patience).toEqual([]);
  });

  test("load beyond the aim: the cluster's own autoscaler gives the Function another instance", async () => {
    const { client } = cluster;
    const target = { namespace, name: "inline" };
    const stop = new AbortController();
    const pods = new Informer<Pod>(client, resources.pods, { namespace });
    void pods.run(stop.signal);
    const metrics = await serveMetrics(client, pods, cluster.scratch, cluster.hostAddress);
    const scale = async (spec: object) => client.patch(functions, target, { spec });
    const running = async () => {
      const { items } = await client.list(resources.pods, {
        namespace,
        labelSelector: podsOfInline,
      });
      return items.filter(({ metadata }) => !metadata.deletionTimestamp);
    };
    const usage = JSON.stringify({ function: { cpu: "500m", memory: "32Mi" } });
    const instances = async () => {
      for (const { metadata } of await running()) {
        const patch = { metadata: { annotations: { [usageAnnotation]: usage } } };
        await client.patch(resources.pods, { namespace, name: metadata.name ?? "" }, patch);
      }
      const { spec, status } = await client.get(functions, target);
      return [spec.replicas, status?.replicas];
    };
    try {
      await scale({ scaleConfig: { minReplicas: 1, maxReplicas: 2 } });
      // It looks every 15 s.
      await expect.poll(instances, { timeout: 120_000, interval: 1_000 }).toEqual([2, 2]);
    } finally {
      stop.abort();
      metrics.close();
      await withdrawMetrics(client);
    }
    await scale({ scaleConfig: null, replicas: 1 });
    await expect.poll(async () => (await running()).length, patience).toBe(1);
    await cluster.untilRunning(namespace, "inline");
  }, 240_000);

  test("the configuration takes effect while Functions run; invalid values are reported", async () => {
    await configure({
      functionBuildMaxSimultaneousJobs: "2",
      targetCPUUtilizationPercentage: "70",
    });
    const effective = async () => (await configuration()).status?.targetCPUUtilizationPercentage;
    await expect.poll(effective, patience).toBe("70");
    await configure({ functionBuildMaxSimultaneousJobs: "many" });
    const state = async () => (await configuration()).status?.state;
    await expect.poll(state, patience).toBe("Error");
    const configured = (await configuration()).status?.conditions?.[0];
    expect(configured).toMatchObject({ type: "Configured", reason: "ConfigurationErr" });
    expect(configured?.message).toContain(`"many" is not a whole number from 1 to 1000`);
    await configure({ functionBuildMaxSimultaneousJobs: "5" });
    await expect.poll(state, patience).toBe("Ready");
  });

  test("a quota that leaves no room for the build is reported in the Function's status", async () => {
    const tight = `${namespace}-tight`;
    await cluster.client.create<Namespace>(resources.namespaces, { metadata: { name: tight } });
    await cluster.client.create(quotas, {
      metadata: { namespace: tight, name: "little" },
      spec: { hard: { "requests.cpu": "10m" } },
    });
    const target = { namespace: tight, name: "refused" };
    await apply({ ...manifest("refused", answering("never")), metadata: target });
    const build = async () => {
      const { status } = await cluster.client.get(functions, target);
      return status?.conditions?.find(({ type }) => type === "BuildReady")?.message;
    };
    await expect
      .poll(build, patience)
      .toContain("its Pod cannot be created: exceeded quota: little");
    await cluster.client.delete(resources.namespaces, { name: tight });
  });

  test("a v1alpha1 Function and its GitRepository become a v1alpha2 one, checked like any other", async () => {
    const url = "https://git.example/shop.git";
    await cluster.client.create(gitRepositories, {
      metadata: { namespace, name: "old" },
      spec: { url },
    });
    const spec = { type: "git" as const, source: "old", baseDir: "/", reference: "main" };
    const old = { metadata: { namespace, name: "old" }, spec: { ...spec, runtime: "nodejs24" } };
    const dryRun = { dryRun: true };
    const create = (object: typeof old) => cluster.client.create(functionsV1alpha1, object, dryRun);
    expect((await create(old)).spec).toMatchObject({ type: "git", source: "old" });
    const wrong = { ...old, spec: { ...old.spec, runtime: "cobol" } };
    await expect(create(wrong)).rejects.toThrow(/spec.runtime/);
    const read = await cluster.client.get(functionsV1alpha1, { namespace, name: "inline" });
    expect(read.spec.source).toBe(answering("edit 2"));
  });

  test("while there are Functions, uninstalling is refused", async () => {
    const { code, stderr } = await cluster.spry("uninstall");
    expect(stderr).toContain(`Functions still exist: ${namespace}`);
    expect(code).toBe(1);
  });

  test("Functions may be kept: they answer without Spry, and the next installation takes them over", async () => {
    const pods = async () => {
      const labelSelector = "serverless.kyma-project.io/resource=deployment";
      const { items } = await cluster.client.list(resources.pods, { namespace, labelSelector });
      return items
        .filter(({ metadata }) => !metadata.deletionTimestamp)
        .map(({ metadata }) => metadata.uid ?? "")
        .toSorted((a, b) => (a < b ? -1 : 1));
    };
    const running = await pods();
    const { stderr } = await cluster.spry("uninstall", "--functions", "keep");
    expect(stderr).toContain("Spry is uninstalled; Functions keep running.");
    expect(await cluster.call(namespace, "inline")).toBe("edit 2");
    expect((await install()).code).toBe(0);
    await expect.poll(async () => (await configuration()).status?.state, patience).toBe("Ready");
    await cluster.untilRunning(namespace, "inline");
    expect(await pods()).toEqual(running);
  }, 240_000);

  test("a deleted Function takes along all that was its own", async () => {
    await cluster.client.delete(functions, { namespace, name: "git" });
    const left = async () => {
      const mine = (await cluster.inventory()).filter((each) => each.includes(`${namespace}/git`));
      return mine;
    };
    await expect.poll(left, patience).toEqual([]);
  });

  test("Spry's own Pods are replaced: no request to the gateway is refused, and no Function", async () => {
    const { refusals, bad, written, ok } = await replaceOwnPods(cluster, {
      system,
      namespace,
      called: "inline",
      written: manifest("asked-for", answering("never")),
    });
    expect({ refusals, bad }).toEqual({ refusals: [], bad: [] });
    expect(Math.min(written, ok)).toBeGreaterThan(20);
  }, 240_000);

  test("the controller's role is what the controller asks for: no less, and no more", async () => {
    const asked = cluster.asked(`${system}:${controllerAccount}`);
    expect(rightsMissing(asked)).toEqual([]);
    // The others are used in on-demand.test.ts.
    const rules = clusterRules.filter((rule) => !onDemandRules.includes(rule));
    const unused = rightsUnused(asked, [...rules, ...namespaceRules]);
    expect(unused.filter((right) => !onlySometimes.has(right))).toEqual([]);
  });

  test("the gateway's role is what the gateway asks for; builds and Functions ask for nothing", async () => {
    const url = `http://${gatewayName}.${system}.svc.cluster.local/`;
    const headers = { host: `inline.${namespace}.localhost` };
    const script = `require("node:http").get("${url}", { headers: ${JSON.stringify(headers)} }, (r) => r.pipe(process.stdout))`;
    expect(await cluster.inClient(namespace, script)).toBe("edit 2");
    const asked = cluster.asked(`${system}:${gatewayName}`);
    expect(rightsMissing(asked)).toEqual([]);
    const rules = [...gatewayRules, ...gatewayExposureRules, ...gatewayNamespaceRules];
    expect(new Set(asked.flatMap(rightsUsed))).toEqual(new Set(rules.flatMap(rightsIn)));
    for (const account of [names.serviceAccount, "default"])
      expect(cluster.asked(`${namespace}:${account}`).map(rightOf)).toEqual([]);
  });

  test.skipIf(noAgent)(
    `of Spry's Pods other Pods reach what is for them, and nothing else${noAgent ? ` (${noAgent})` : ""}`,
    async () => {
      const { items } = await cluster.client.list(resources.pods, { namespace: system });
      const ipOf = (name: string) =>
        items.find(
          ({ metadata, status }) =>
            metadata.name?.startsWith(name) &&
            !metadata.deletionTimestamp &&
            status?.phase === "Running",
        )?.status?.podIP;
      const controller = ipOf("serverless-controller");
      const registry = ipOf("serverless-docker-registry");
      const gateway = ipOf(gatewayName);
      const own = (await cluster.client.get(resources.pods, { namespace, name: "client" })).status;
      expect(
        await connections(cluster, namespace, [
          ...[8443, 8080, 8082, 9229].map((port) => `${controller}:${port}`),
          ...[5000, 8080].map((port) => `${registry}:${port}`),
          ...[8080, 22].map((port) => `${gateway}:${port}`),
          `${own?.podIP}:22`,
        ]),
      ).toEqual({
        [`${controller}:8443`]: "open",
        [`${controller}:8080`]: "open",
        [`${controller}:8082`]: "open",
        [`${registry}:5000`]: "open",
        [`${gateway}:8080`]: "open",
        // Nothing listens there either, which is reported at once where nothing drops packets: as the last one shows.
        [`${controller}:9229`]: "silence",
        [`${registry}:8080`]: "silence",
        [`${gateway}:22`]: "silence",
        [`${own?.podIP}:22`]: "ECONNREFUSED",
      });
      expect(agent?.failures).toEqual([]);
    },
  );

  test("spry uninstall leaves nothing behind", async () => {
    const { code, stderr } = await cluster.spry("uninstall", "--functions", "delete");
    expect(stderr).toContain("Spry is uninstalled.");
    expect(code).toBe(0);
    await cluster.client.delete(resources.namespaces, { name: namespace });
    const left = async () => {
      const now = await cluster.inventory();
      return now.filter((each) => !before.includes(each));
    };
    // A Pod may take its minute to end, and its namespace some more.
    await expect.poll(left, { timeout: 180_000, interval: 500 }).toEqual([]);
  }, 300_000);

  test.skipIf(!existsSync(helm()))(
    `the Helm chart installs the same (needs ${helm()})`,
    async () => {
      const values = cluster.values.flatMap((file) => ["--values", file]);
      const to = ["--kubeconfig", cluster.kubeconfig, "--namespace", system];
      const flags = ["--create-namespace", "--wait", "--timeout=150s"];
      const installed = await run(helm(), ["install", "spry", chart, ...to, ...flags, ...values]);
      expect(installed.stderr).not.toContain("Error");
      expect(installed.code).toBe(0);
      await expect.poll(async () => (await configuration()).status?.state, patience).toBe("Ready");
      await cluster.client.delete(serverlesses, { namespace: system, name: "default" });
      const left = async () => (await cluster.client.list(serverlesses)).items.length;
      await expect.poll(left, patience).toBe(0);
      expect((await run(helm(), ["uninstall", "spry", ...to, "--wait"])).code).toBe(0);
      const deployments = await cluster.client.list(resources.deployments, { namespace: system });
      expect(deployments.items).toEqual([]);
    },
    240_000,
  );
});

/** Rights for what happens rarely, each with its occasion. */
const onlySometimes = new Set([
  // A revision that another leader has recorded just now is compared; there are ten before the first one goes.
  "get apps/controllerrevisions",
  "delete apps/controllerrevisions",
  // A certificate that is renewed replaces the one before.
  "update /secrets",
  // A choice of registry that is taken back is taken back in every namespace.
  "delete /secrets",
  // What an earlier Function of the same name has left goes first.
  "delete /configmaps",
  "delete /services",
  "delete apps/deployments",
  // There is a status to write where there is an APIRule.
  "patch gateway.kyma-project.io/apirules/status",
  // An Event that is repeated is counted.
  "patch /events",
]);
