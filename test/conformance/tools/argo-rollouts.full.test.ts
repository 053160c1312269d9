/** Argo Rollouts, unmodified: its controller and its plugin for kubectl shift Services from one version's Pods to the next one's, step by step, and back. */
import { readdirSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { argoRollouts } from "../../../tools/foreign-tools/argo-rollouts.ts";
import { freePort } from "../../kit/index.ts";
import { ForeignPrograms } from "../../support/foreign-programs.ts";
import { functionManifest, Platform, run } from "../../support/platform.ts";

const built = argoRollouts();
const minuteMs = 60_000;
/** A server that answers with its version. */
const server = `
  const { SERVER_HOST = "0.0.0.0", VERSION } = process.env;
  require("node:http").createServer((_, answer) => answer.end(VERSION)).listen(8080, SERVER_HOST);`;

describe.skipIf(!built)("Argo Rollouts (needs: npm run foreign-tools)", () => {
  const platform = new Platform();
  const programs = new ForeignPrograms();
  const { controller, plugin, definitions } = built ?? {
    controller: "",
    plugin: "",
    definitions: "",
  };
  let image: string;

  beforeAll(async () => {
    await platform.start();
    for (const file of readdirSync(definitions).filter((name) => name.endsWith("-crd.yaml")))
      await platform.k(`apply --server-side -f ${path.join(definitions, file)}`);
    await platform.k("create namespace argo-rollouts");
    const ports = [`--metricsPort=${await freePort()}`, `--healthzPort=${await freePort()}`];
    programs.start(controller, ports, platform.kubeconfig);
    image = await imageWithNode();
  }, 5 * minuteMs);
  afterAll(async () => {
    await programs.stop();
    await platform.remove();
  });

  beforeEach(({ onTestFailed }) => onTestFailed(() => console.error(programs.output.slice(-6000))));

  /** That of a Function. */
  async function imageWithNode(): Promise<string> {
    await platform.k("apply -f -", functionManifest("hello", "exports.main = () => 'hello';"));
    await platform.k("wait --for=condition=Running function/hello --timeout=120s");
    const label = "serverless.kyma-project.io/function-name=hello";
    return get(`deployments -l ${label}`, "{.items[0].spec.template.spec.containers[0].image}");
  }

  const get = (what: string, output: string) => platform.k(`get ${what} -o jsonpath=${output}`);
  const apply = (...objects: object[]) =>
    platform.k("apply -f -", objects.map((each) => JSON.stringify(each)).join("\n"));

  function rollout(name: string, version: string, replicas: number, strategy: object): object {
    return {
      apiVersion: "argoproj.io/v1alpha1",
      kind: "Rollout",
      metadata: { name },
      spec: {
        replicas,
        selector: { matchLabels: { app: name } },
        strategy,
        template: {
          metadata: { labels: { app: name } },
          spec: {
            terminationGracePeriodSeconds: 1,
            // An image is run only with the login of its namespace.
            imagePullSecrets: [{ name: "serverless-registry-config-default" }],
            containers: [
              {
                name: "main",
                image,
                command: ["node", "-e", server],
                env: [{ name: "VERSION", value: version }],
                ports: [{ containerPort: 8080 }],
                readinessProbe: { httpGet: { path: "/", port: 8080 }, periodSeconds: 1 },
              },
            ],
          },
        },
      },
    };
  }

  const service = (name: string, app: string) => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name },
    spec: { selector: { app }, ports: [{ port: 80, targetPort: 8080 }] },
  });

  const untilPhase = (name: string, phase: string) =>
    expect
      .poll(() => get(`rollout ${name}`, "{.status.phase}:{.status.message}"), {
        timeout: 2 * minuteMs,
      })
      .toMatch(new RegExp(`^${phase}`));

  /** How many Pods there are of each version. */
  async function versions(app: string): Promise<Record<string, number>> {
    const found = await get(`pods -l app=${app}`, "{.items[*].spec.containers[0].env[0].value}");
    const counts: Record<string, number> = {};
    for (const version of found.split(" ").filter(Boolean))
      counts[version] = (counts[version] ?? 0) + 1;
    return counts;
  }
  const untilVersions = (app: string, wanted: Record<string, number>) =>
    expect.poll(() => versions(app), { timeout: minuteMs }).toEqual(wanted);

  /** The versions that answer requests to a Service. */
  async function answers(name: string): Promise<string[]> {
    const found = new Set<string>();
    for (let request = 0; request < 20; request++)
      found.add(
        await platform.k(`get --raw /api/v1/namespaces/default/services/${name}:80/proxy/`),
      );
    return [...found].sort();
  }
  const untilAnswers = (name: string, wanted: string[]) =>
    expect.poll(() => answers(name), { timeout: minuteMs }).toEqual(wanted);

  /** `kubectl argo rollouts`, which has to work; returns what it printed. */
  async function argo(...command: string[]): Promise<string> {
    const args = [...command, "--kubeconfig", platform.kubeconfig];
    const { code, stdout, stderr } = await run(plugin, args);
    if (code !== 0) throw new Error(`kubectl argo rollouts ${command.join(" ")}: ${stderr}`);
    return stdout;
  }

  describe("a canary", () => {
    const canary = { canary: { steps: [{ setWeight: 50 }, { pause: {} }, { setWeight: 75 }] } };
    const shop = (version: string) => rollout("shop", version, 4, canary);

    test(
      "gets half of the Pods and of the answers, and all of them when it is promoted",
      async () => {
        await apply(service("shop", "shop"), shop("one"));
        await untilPhase("shop", "Healthy");
        await untilVersions("shop", { one: 4 });
        await apply(shop("two"));
        await untilPhase("shop", "Paused:CanaryPauseStep");
        await untilVersions("shop", { one: 2, two: 2 });
        await untilAnswers("shop", ["one", "two"]);
        await argo("promote", "shop");
        expect(await argo("status", "shop", "--timeout=120s")).toMatch(/Healthy\n$/);
        await untilVersions("shop", { two: 4 });
        await untilAnswers("shop", ["two"]);
      },
      6 * minuteMs,
    );

    test(
      "that is aborted gives its Pods back to the version before",
      async () => {
        await apply(shop("three"));
        await untilPhase("shop", "Paused:CanaryPauseStep");
        await argo("abort", "shop");
        await untilPhase("shop", "Degraded:RolloutAborted");
        await untilVersions("shop", { two: 4 });
        await untilAnswers("shop", ["two"]);
        await argo("undo", "shop");
        await untilPhase("shop", "Healthy");
        expect(await argo("get", "rollout", "shop", "--no-color")).toMatch(
          /Status:\s+✔ Healthy[^]*revision:4(?:[^]*ready:1\/1){4}[^]*ScaledDown/,
        );
      },
      6 * minuteMs,
    );

    test(
      "is scaled by kubectl, and all its steps can be skipped",
      async () => {
        await platform.k("scale rollout shop --replicas=2");
        await untilVersions("shop", { two: 2 });
        await apply(rollout("shop", "four", 2, canary));
        await untilPhase("shop", "Paused:CanaryPauseStep");
        await argo("promote", "shop", "--full");
        await untilPhase("shop", "Healthy");
        await untilVersions("shop", { four: 2 });
      },
      6 * minuteMs,
    );
  });

  test(
    "blue and green are served by two Services, which are switched when green is promoted",
    async () => {
      const strategy = {
        blueGreen: {
          activeService: "till",
          previewService: "till-preview",
          autoPromotionEnabled: false,
          scaleDownDelaySeconds: 5,
        },
      };
      const till = (version: string) => rollout("till", version, 2, strategy);
      await apply(service("till", "till"), service("till-preview", "till"), till("blue"));
      await untilPhase("till", "Healthy");
      await untilAnswers("till", ["blue"]);
      await apply(till("green"));
      await untilPhase("till", "Paused:BlueGreenPause");
      await untilAnswers("till-preview", ["green"]);
      await untilAnswers("till", ["blue"]);
      await argo("promote", "till");
      await untilPhase("till", "Healthy");
      await untilAnswers("till", ["green"]);
      await untilVersions("till", { green: 2 });
      await platform.k("delete rollout till");
      await untilVersions("till", {});
      expect(await get("replicasets -l app=till", "{.items[*].metadata.name}")).toBe("");
    },
    6 * minuteMs,
  );
});
