/** Functions that are served on demand, on a real cluster: callers by kube-proxy, and what serves them ends in turn. */
import { randomBytes } from "node:crypto";
import { type Function, functions, knative } from "@spry/function";
import { resources, sleep, systemClock } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { controllerAccount, onDemandRules } from "../../packages/cli/src/install/access.ts";
import { gatewayName } from "../../packages/cli/src/install/gateway.ts";
import { findProgram } from "../../packages/machine/src/network/pods/commands.ts";
import { Load } from "../support/client-pod.ts";
import { InstalledCluster, whyNoInstallation } from "../support/installed-cluster.ts";
import { functionManifest, run } from "../support/platform.ts";
import { type PolicyAgent } from "../support/policy-agent.ts";
import { rightsMissing, rightsUnused } from "../support/rights.ts";
import { impatientServing } from "../support/serving-settings.ts";

const reason = whyNoInstallation();
const cluster = new InstalledCluster();
const system = "kyma-system";
const namespace = `demand-${randomBytes(3).toString("hex")}`;
const target = { namespace, name: "zero" };
const patience = { timeout: 90_000, interval: 250 };

const scaleConfig = { minReplicas: 0, maxReplicas: 3 };
/** The shortest window that Knative permits. */
const annotations = { "autoscaling.knative.dev/window": "6s" };

async function apply(name: string, version: number, spec: object): Promise<void> {
  const source = `module.exports = { main: () => "version ${version}" };`;
  const fn = JSON.parse(functionManifest(name, source, { ...spec }, { namespace })) as Function;
  await cluster.client.apply(functions, fn, { fieldManager: "test" });
}

const podsOf = async (name: string) => {
  const labelSelector = `serving.knative.dev/service=${name}`;
  return (await cluster.client.list(resources.pods, { namespace, labelSelector })).items.length;
};
const atZero = () => expect.poll(() => podsOf("zero"), patience).toBe(0);

/** One request from the client's Pod, without another attempt. */
const ask = (url: string) =>
  cluster.inClient(
    namespace,
    `fetch("${url}").then((r) => r.text()).then((t) => console.log(t), (e) => console.log(String(e.cause ?? e)))`,
  );

async function leader(): Promise<string> {
  const { items } = await cluster.client.list(resources.leases, { namespace: system });
  return items[0]?.spec?.holderIdentity ?? "";
}

describe.skipIf(reason !== undefined)(`on demand${reason ? ` (skipped: ${reason})` : ""}`, () => {
  let agent: PolicyAgent | undefined;

  beforeAll(async () => {
    await cluster.start();
    // Callers, and the leader's way to the counts, go where the policies leave a way open.
    agent = findProgram("nft") ? await cluster.enforcePolicies() : undefined;
    const { code, stderr } = await cluster.install();
    if (code !== 0) throw new Error(stderr);
    const kubectl = ["--kubeconfig", cluster.kubeconfig, "apply", "-f", "-"];
    await run("kubectl", kubectl, impatientServing);
    const level = { "pod-security.kubernetes.io/enforce": "restricted" };
    await cluster.client.create(resources.namespaces, {
      metadata: { name: namespace, labels: level },
    });
    await cluster.startClient(namespace);
    await apply("zero", 1, { scaleConfig, annotations });
    await cluster.untilRunning(namespace, "zero");
  }, 600_000);
  afterAll(() => cluster.stop(), 60_000);

  test("at zero it is reached by its short name, its full names and its ClusterIP", async () => {
    const { spec } = await cluster.client.get(resources.services, target);
    const hosts = ["zero", `zero.${namespace}`, `zero.${namespace}.svc.cluster.local`];
    for (const host of [...hosts, spec?.clusterIP]) {
      await atZero();
      expect(await ask(`http://${host}/`), host).toBe("version 1");
    }
    expect(agent?.failures ?? []).toEqual([]);
  }, 300_000);

  test("a NetworkPolicy keeps a Pod from a Function, by the gateway's own Service, too", async () => {
    const front = `${gatewayName}.${system}.svc.cluster.local`;
    /** A request to the gateway's own Service, which names the Function by its host. */
    const askFront = () =>
      cluster.inClient(
        namespace,
        `require("node:http").get({ host: "${front}", headers: { host: "zero.${namespace}.svc.cluster.local" } }, (r) => r.on("data", (d) => console.log(String(d).trim()))).on("error", (e) => console.log(String(e)))`,
      );
    const both = async () =>
      [await ask("http://zero/"), await askFront()].map((each) => each.trim());
    const served = ["version 1", "version 1"];
    await expect.poll(both, patience).toEqual(served);
    const of = (name: string) => ({
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } },
    });
    // The gateway calls its Pods for everyone.
    const policy = (...from: object[]) => ({
      metadata: { name: "zero", namespace },
      spec: {
        podSelector: { matchLabels: { "serverless.kyma-project.io/function-name": "zero" } },
        ingress: [{ from }],
      },
    });
    const apply = (...from: object[]) =>
      cluster.client.apply(resources.networkPolicies, policy(...from), { fieldManager: "test" });
    await apply(of(system));
    const refused = expect.stringContaining("a NetworkPolicy does not admit this caller") as string;
    await expect.poll(both, patience).toEqual([refused, refused]);
    await apply(of(system), of(namespace));
    await expect.poll(both, patience).toEqual(served);
    await cluster.client.delete(resources.networkPolicies, { namespace, name: "zero" });
  }, 300_000);

  test("a request whose process was killed is found by its id, with the reason", async () => {
    const source = `module.exports = { main: ({ extensions: { request } }) => {
      for (const all = []; request.path === "/fill"; ) all.push(Buffer.alloc(8 << 20, 1));
      return "lives";
    } };`;
    const spec = { resourceConfiguration: { function: { profile: "XS" } } };
    const fn = JSON.parse(functionManifest("mortal", source, spec, { namespace })) as Function;
    await cluster.client.apply(functions, fn, { fieldManager: "test" });
    await cluster.untilRunning(namespace, "mortal");
    const options = {
      host: `${gatewayName}.${system}.svc.cluster.local`,
      path: "/fill?token=1",
      method: "POST",
      headers: { host: `mortal.${namespace}.svc.cluster.local`, "x-request-id": "r-fill" },
    };
    const script = `require("node:http").request(${JSON.stringify(options)}, (r) => console.log(r.statusCode)).on("error", (e) => console.log(String(e))).end()`;
    const status = async () => (await cluster.inClient(namespace, script)).trim();
    await expect.poll(status, patience).toBe("502");
    const logs = async () =>
      (await cluster.spry("logs", "mortal", "-n", namespace, "--request", "r-fill")).stdout;
    // The node writes why a moment later.
    await expect
      .poll(logs, patience)
      .toMatch(
        /ERROR \[r-fill\] POST \/fill was not answered: the connection ended before there was a response; at that time the container of mortal-\S+ ended: OOMKilled, exit code 137/,
      );
  }, 300_000);

  test("the leader is killed while a request waits for the first Pod: its successor starts one", async () => {
    await atZero();
    const name = await leader();
    const killed = { gracePeriodSeconds: 0 };
    await cluster.client.delete(resources.pods, { namespace: system, name }, killed);
    expect(await ask("http://zero/")).toBe("version 1");
    expect(await leader()).not.toBe(name);
  }, 120_000);

  test("gateways leave and come: callers inside are all answered", async () => {
    const load = await Load.start(cluster, namespace, "zero");
    const gateways = async () => {
      const labelSelector = `app.kubernetes.io/name=${gatewayName}`;
      const { items } = await cluster.client.list(resources.pods, {
        namespace: system,
        labelSelector,
      });
      return items.map(({ metadata }) => metadata.name ?? "");
    };
    const before = await gateways();
    const annotation = { "kubectl.kubernetes.io/restartedAt": new Date().toISOString() };
    await cluster.client.patch(
      resources.deployments,
      { namespace: system, name: gatewayName },
      { spec: { template: { metadata: { annotations: annotation } } } },
    );
    const left = async () => (await gateways()).filter((each) => before.includes(each));
    await expect.poll(left, patience).toEqual([]);
    const { ok, bad } = await load.stop();
    expect(bad).toEqual([]);
    expect(ok).toBeGreaterThan(50);
  }, 240_000);

  test("a limit is exact with two gateways, also while the one that admits is killed", async () => {
    // Each answer is the most that its Pod has ever had at a time.
    const source = `let now = 0, most = 0;
      module.exports = { main: async () => {
        most = Math.max(most, ++now);
        await new Promise((resolve) => setTimeout(resolve, 30));
        now--;
        return String(most);
      } };`;
    // So long a successor counts what the killed one had under way.
    const timeoutSeconds = 2;
    const scaleConfigOfOne = { minReplicas: 1, maxReplicas: 3 };
    const spec = { scaleConfig: scaleConfigOfOne, concurrency: { limit: 1 }, timeoutSeconds };
    const fn = JSON.parse(functionManifest("counted", source, spec, { namespace })) as Function;
    await cluster.client.apply(functions, fn, { fieldManager: "test" });
    await cluster.untilRunning(namespace, "counted");
    const seconds = 60;
    const script = `const { get } = require("node:http");
      const end = Date.now() + ${seconds * 1_000};
      const seen = { answered: 0, most: 0, late: 0 };
      const ask = () => new Promise((resolve) => get("http://counted/", { agent: false }, (response) => {
        let body = "";
        response.on("data", (chunk) => (body += chunk)).on("end", () => resolve(response.statusCode === 200 ? Number(body) : 0));
      }).on("error", () => resolve(0)));
      const client = async () => {
        while (Date.now() < end) {
          const most = await ask();
          if (!most) { await new Promise((resolve) => setTimeout(resolve, 50)); continue; }
          seen.answered++;
          if (Date.now() > end - 10_000) seen.late++;
          seen.most = Math.max(seen.most, most);
        }
      };
      Promise.all(Array.from({ length: 6 }, client)).then(() => console.log(JSON.stringify(seen)));`;
    const asking = cluster.inClient(namespace, script);
    await sleep(systemClock, (seconds / 6) * 1_000);
    const lease = { namespace: system, name: "serverless-gateway-admission" };
    const holder = async () => {
      const { metadata } = await cluster.client.get(resources.leases, lease);
      const text = metadata.annotations?.["serving.spry.io/admission"] ?? "{}";
      return JSON.parse(text) as { front?: string; witnesses?: string[] };
    };
    const before = await holder();
    expect(before.witnesses).toHaveLength(1);
    const labelSelector = `app.kubernetes.io/name=${gatewayName}`;
    const { items } = await cluster.client.list(resources.pods, {
      namespace: system,
      labelSelector,
    });
    const admits = items.find(({ status }) => before.front === `${status?.podIP}:8080`);
    const name = admits?.metadata.name ?? "";
    await cluster.client.delete(
      resources.pods,
      { namespace: system, name },
      { gracePeriodSeconds: 0 },
    );
    const seen = JSON.parse(await asking) as { answered: number; most: number; late: number };
    expect(seen.most).toBe(1);
    expect(seen.answered).toBeGreaterThan(50);
    expect(seen.late).toBeGreaterThan(10);
    expect((await holder()).front).not.toBe(before.front);
  }, 240_000);

  test("changes between the two ways of serving lose no request to its Service", async () => {
    await apply("switch", 1, { replicas: 1 });
    await cluster.untilRunning(namespace, "switch");
    await cluster.call(namespace, "switch");
    const load = await Load.start(cluster, namespace, "switch");
    const services = async () =>
      (await cluster.client.list(knative.services, { namespace })).items
        .map(({ metadata }) => metadata.name)
        .includes("switch");
    const deployments = async () =>
      (await cluster.client.list(resources.deployments, { namespace })).items
        .map(({ metadata }) => metadata.name)
        .includes("switch");
    for (let version = 2; version <= 5; version++) {
      const onDemand = version % 2 === 0;
      await apply("switch", version, onDemand ? { scaleConfig, annotations } : { replicas: 1 });
      await expect.poll(services, patience).toBe(onDemand);
      await expect.poll(deployments, patience).toBe(!onDemand);
      await cluster.untilRunning(namespace, "switch");
    }
    const { ok, bad, answers } = await load.stop();
    expect(bad).toEqual([]);
    expect(ok).toBeGreaterThan(100);
    expect(answers).toContain("version 4");
  }, 400_000);

  test("the controller's rights for this are what it asks for: no less, and no more", async () => {
    const asked = cluster.asked(`${system}:${controllerAccount}`);
    expect(rightsMissing(asked)).toEqual([]);
    const unused = rightsUnused(asked, onDemandRules);
    expect(unused.filter((right) => !onlySometimes.has(right))).toEqual([]);
  });

  test("the whole of it can be uninstalled, the definitions included", async () => {
    const { code, stderr } = await cluster.spry("uninstall", "--functions", "delete");
    expect(stderr).toContain("Spry is uninstalled.");
    expect(code).toBe(0);
    const { items } = await cluster.client.list(resources.customResourceDefinitions);
    expect(items.map(({ metadata }) => metadata.name)).toEqual([]);
  }, 240_000);
});

/** Rights for what happens rarely, each with its occasion. */
const onlySometimes = new Set([
  // Traffic is divided otherwise; more Revisions than are kept.
  "patch serving.knative.dev/routes",
  "delete serving.knative.dev/revisions",
  // Traffic names a revision from the time as a Deployment.
  "get serving.knative.dev/configurations",
  "get serving.knative.dev/revisions",
  // A Knative that others install takes over, and our webhooks go.
  "delete admissionregistration.k8s.io/mutatingwebhookconfigurations",
  "delete admissionregistration.k8s.io/validatingwebhookconfigurations",
]);
