/** Plain Deployments and Jobs: they follow their load, and reach the desired state after kill -9 at any moment. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { functionManifest, pause, Platform } from "../support/platform.ts";
import { mountsOf, processesOf } from "../support/processes.ts";

/** An image that is there: that of a Function. */
async function builtImage(platform: Platform): Promise<string> {
  const source = "module.exports = { main: () => 'hi' }";
  await platform.k("apply -f -", functionManifest("hello", source));
  await platform.k("wait --for=condition=Running function/hello --timeout=90s");
  const selector = "serverless.kyma-project.io/function-name=hello";
  const at = "{.items[0].spec.template.spec.containers[0].image}";
  return platform.k(`get deployments -l ${selector} -o jsonpath=${at}`);
}

/** Who runs an image shows the login of its namespace. */
const imagePullSecrets = [{ name: "serverless-registry-config-default" }];

const deployment = (name: string, replicas: number, container: object, volumes: object[] = []) =>
  JSON.stringify({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace: "default" },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          terminationGracePeriodSeconds: 1,
          imagePullSecrets,
          containers: [{ name: "main", ...container }],
          volumes,
        },
      },
    },
  });

describe("an autoscaler", () => {
  const platform = new Platform();
  beforeAll(async () => void (await platform.start()));
  afterAll(() => platform.remove());

  /** Takes about a third of a core while the file says so. */
  const worker = `
    const { readFileSync } = require("node:fs");
    setInterval(() => {
      if (readFileSync(process.argv[1], "utf8") !== "busy") return;
      for (const end = Date.now() + 30; Date.now() < end; );
    }, 100);`;

  test("follows the load of real processes, up and down again", async () => {
    const image = await builtImage(platform);
    await platform.k("create configmap load --from-literal=level=busy");
    const container = {
      image,
      command: ["node", "-e", worker, "/etc/load/level"],
      resources: { requests: { cpu: "50m" } },
      volumeMounts: [{ name: "load", mountPath: "/etc/load" }],
    };
    const volumes = [{ name: "load", configMap: { name: "load" } }];
    await platform.k("apply -f -", deployment("worker", 1, container, volumes));
    await platform.k(
      "apply -f -",
      JSON.stringify({
        apiVersion: "autoscaling/v2",
        kind: "HorizontalPodAutoscaler",
        metadata: { name: "worker", namespace: "default" },
        spec: {
          minReplicas: 1,
          maxReplicas: 2,
          scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "worker" },
          metrics: [
            {
              type: "Resource",
              resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 60 } },
            },
          ],
          behavior: { scaleDown: { stabilizationWindowSeconds: 0 } },
        },
      }),
    );
    const available = () =>
      platform.k("get deployment worker -o jsonpath={.status.availableReplicas}");
    await expect.poll(available, { timeout: 90_000, interval: 500 }).toBe("2");
    await platform.k(`patch configmap load -p {"data":{"level":"idle"}}`);
    await expect.poll(available, { timeout: 90_000, interval: 500 }).toBe("1");
    const events = await platform.k(
      "get events --field-selector reason=SuccessfulRescale -o jsonpath={.items[*].message}",
    );
    expect(events).toContain(
      "New size: 2; reason: cpu resource utilization (percentage of request) above target",
    );
    expect(events).toContain("New size: 1; reason: All metrics below target");
  }, 300_000);
});

describe("kill -9 at random points of rollouts and Jobs", () => {
  const platform = new Platform();
  afterAll(() => platform.remove());

  const rounds = 6;
  const names = ["one", "two", "three"];
  let seed = 20260101;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 8) % below;
  };

  test("everything that was acknowledged comes true, and nothing else is left", async () => {
    await platform.start();
    const image = await builtImage(platform);
    const container = (version: string) => ({
      image,
      command: ["node", "-e", "setInterval(() => {}, 1000)"],
      env: [{ name: "VERSION", value: version }],
    });
    const wish = (name: string, version: string) =>
      deployment(name, 1 + (Number(version) % 3), container(version));
    const jobOf = (name: string) =>
      JSON.stringify({
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name, namespace: "default" },
        spec: {
          template: {
            spec: {
              restartPolicy: "Never",
              imagePullSecrets,
              containers: [{ name: "main", image, command: ["node", "-e", "0"] }],
            },
          },
        },
      });
    /** The versions that a Deployment may have: the last acknowledged, and one that was sent after it. */
    const possible = new Map<string, Set<string>>();
    const jobs = new Set<string>();
    let version = 0;
    const roll = async (name: string, isOver: () => boolean) => {
      while (!isOver()) {
        const next = String(++version);
        possible.set(name, (possible.get(name) ?? new Set()).add(next));
        const { code } = await platform.kubectl(["apply", "-f", "-"], wish(name, next));
        if (code === 0) possible.set(name, new Set([next]));
      }
    };
    const work = async (isOver: () => boolean) => {
      while (!isOver()) {
        const name = `job-${++version}`;
        const { code } = await platform.kubectl(["apply", "-f", "-"], jobOf(name));
        if (code === 0) jobs.add(name);
      }
    };
    for (let round = 0; round < rounds; round++) {
      if (round > 0) await platform.start();
      let isOver = false;
      const writers = [...names.map((name) => roll(name, () => isOver)), work(() => isOver)];
      await pause(500 + random(2500));
      isOver = true;
      await platform.kill();
      await Promise.all(writers);
    }
    await platform.start();
    for (const name of names) {
      const found = await platform.k(`get deployment ${name} -o jsonpath={..env[0].value}`);
      expect([...(possible.get(name) ?? [])]).toContain(found);
      await platform.k(`rollout status deployment/${name} --timeout=110s`);
      const versions = () => platform.k(`get pods -l app=${name} -o jsonpath={..env[0].value}`);
      const wanted = Array.from({ length: 1 + (Number(found) % 3) }, () => found).join(" ");
      await expect.poll(versions, { timeout: 60_000 }).toBe(wanted);
    }
    expect(jobs.size).toBeGreaterThan(0);
    for (const name of jobs) {
      await platform.k(`wait --for=condition=Complete job/${name} --timeout=110s`);
      expect(await platform.k(`get job ${name} -o jsonpath={.status.succeeded}`), name).toBe("1");
    }
    await platform.stop();
    expect(processesOf(platform.dataDir)).toEqual([]);
    expect(mountsOf(platform.dataDir)).toEqual([]);
  }, 300_000);
});
