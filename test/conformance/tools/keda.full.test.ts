/** KEDA, unmodified: its operator and its metrics adapter, which scale a Function by a number that they fetch. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { keda } from "../../../tools/foreign-tools/keda.ts";
import { freePort } from "../../kit/index.ts";
import { functionManifest, Platform } from "../../support/platform.ts";
import { certificate } from "../harness.ts";

const programs = keda();
const minuteMs = 60_000;

describe.skipIf(!programs)("KEDA (needs: npm run foreign-tools)", () => {
  const { operator, adapter, config } = programs ?? { operator: "", adapter: "", config: "" };
  const platform = new Platform();
  const directory = mkdtempSync(path.join(tmpdir(), "keda-"));
  const children: ChildProcess[] = [];
  let output = "";
  let waiting = 0;
  const queue = createServer((_, outgoing) => outgoing.end(JSON.stringify({ waiting })));

  beforeAll(async () => {
    await platform.start();
    queue.listen(0, "127.0.0.1");
    const definitions = path.join(config, "crd/bases");
    for (const file of readdirSync(definitions))
      await platform.k(`apply --server-side -f ${path.join(definitions, file)}`);
    await platform.k("create namespace keda");
    await startKeda();
  }, 3 * minuteMs);
  afterAll(async () => {
    for (const child of children) child.kill("SIGKILL");
    queue.close();
    await platform.remove();
  });

  beforeEach(({ onTestFailed }) => onTestFailed(() => console.error(output.slice(-4000))));

  async function startKeda(): Promise<void> {
    const names = ["keda-operator", "keda-metrics-apiserver"].map((name) => `DNS:${name}.keda.svc`);
    certificate(directory, "ca", "/CN=keda");
    certificate(directory, "tls", "/CN=keda", { ca: "ca", names: names.join(",") });
    const [grpc, https, metrics] = [await freePort(), await freePort(), await freePort()];
    const certificates = `--cert-dir=${directory}`;
    run(operator, [
      certificates,
      "--enable-cert-rotation=false",
      "--enable-webhook-patching=false",
      "--enable-apiservice-patching=false",
      `--metrics-service-bind-address=127.0.0.1:${grpc}`,
      "--metrics-bind-address=0",
      "--health-probe-bind-address=0",
    ]);
    run(adapter, [
      certificates,
      `--secure-port=${https}`,
      "--bind-address=127.0.0.1",
      `--port=${metrics}`,
      `--client-ca-file=${path.join(directory, "ca.crt")}`,
      `--tls-cert-file=${path.join(directory, "tls.crt")}`,
      `--tls-private-key-file=${path.join(directory, "tls.key")}`,
      `--metrics-service-address=127.0.0.1:${grpc}`,
      "--metrics-service-grpc-authority=keda-operator.keda.svc",
      ...["lister", "authentication", "authorization"].map(
        (of) => `--${of}-kubeconfig=${platform.kubeconfig}`,
      ),
    ]);
    await platform.k(
      "apply -f -",
      JSON.stringify({ kind: "List", apiVersion: "v1", items: at(https) }),
    );
  }

  function run(program: string, args: string[]): void {
    const env = {
      PATH: process.env.PATH,
      HOME: directory,
      KUBECONFIG: platform.kubeconfig,
      POD_NAMESPACE: "keda",
      KEDA_CLUSTER_OBJECT_NAMESPACE: "keda",
      WATCH_NAMESPACE: "",
    };
    const child = spawn(program, args, { env, cwd: directory });
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    children.push(child);
  }

  /** The adapter's Service, to which the API server passes `external.metrics.k8s.io`. */
  function at(port: number): object[] {
    const metadata = { namespace: "keda", name: "keda-metrics-apiserver" };
    const group = "external.metrics.k8s.io";
    return [
      {
        apiVersion: "v1",
        kind: "Service",
        metadata,
        spec: { ports: [{ name: "https", port: 443 }] },
      },
      {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: { ...metadata, labels: { "kubernetes.io/service-name": metadata.name } },
        addressType: "IPv4",
        endpoints: [{ addresses: ["127.0.0.1"] }],
        ports: [{ name: "https", port }],
      },
      {
        apiVersion: "apiregistration.k8s.io/v1",
        kind: "APIService",
        metadata: { name: `v1beta1.${group}` },
        spec: {
          group,
          version: "v1beta1",
          groupPriorityMinimum: 100,
          versionPriority: 100,
          service: metadata,
          caBundle: readFileSync(path.join(directory, "ca.crt")).toString("base64"),
        },
      },
    ];
  }

  const get = (what: string, output: string) => platform.k(`get ${what} -o jsonpath={${output}}`);
  const ready = (count: number) =>
    expect
      .poll(() => get("function worker", ".status.replicas"), { timeout: 3 * minuteMs })
      .toBe(String(count));

  test(
    "its metrics adapter is an API server behind this one",
    async () => {
      await platform.k(
        "wait --for=condition=Available apiservice/v1beta1.external.metrics.k8s.io --timeout=60s",
      );
      expect(await platform.k("api-versions")).toContain("external.metrics.k8s.io/v1beta1\n");
      expect(await platform.k("get apiservices")).toMatch(
        /v1beta1\.external\.metrics\.k8s\.io\s+keda\/keda-metrics-apiserver\s+True/,
      );
    },
    2 * minuteMs,
  );

  test(
    "scales a Function from one Pod to several by an external metric, and back",
    async () => {
      const { port } = queue.address() as { port: number };
      await platform.k(
        "apply -f -",
        functionManifest("worker", `module.exports = { main: () => "done" };`),
      );
      await platform.k("wait --for=condition=Running function/worker --timeout=120s");
      const scaledObject = {
        apiVersion: "keda.sh/v1alpha1",
        kind: "ScaledObject",
        metadata: { name: "worker" },
        spec: {
          scaleTargetRef: {
            apiVersion: "serverless.kyma-project.io/v1alpha2",
            kind: "Function",
            name: "worker",
          },
          minReplicaCount: 1,
          maxReplicaCount: 4,
          pollingInterval: 2,
          advanced: {
            horizontalPodAutoscalerConfig: {
              behavior: { scaleDown: { stabilizationWindowSeconds: 0 } },
            },
          },
          triggers: [
            {
              type: "metrics-api",
              metadata: {
                url: `http://127.0.0.1:${port}/`,
                valueLocation: "waiting",
                targetValue: "5",
              },
            },
          ],
        },
      };
      await platform.k("apply -f -", JSON.stringify(scaledObject));
      await platform.k("wait --for=condition=Ready scaledobject/worker --timeout=60s");
      waiting = 15;
      await ready(3);
      expect(
        await get("hpa keda-hpa-worker", '.status.conditions[?(@.type=="ScalingActive")].reason'),
      ).toBe("ValidMetricFound");
      waiting = 0;
      await ready(1);
    },
    8 * minuteMs,
  );
});
