/** Definitions of well-known projects, some larger than an annotation may be, and objects of them. */
import { readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Project, sourcesOf } from "../../../tools/foreign-tools/definitions.ts";
import { type Harness, hasKubectl, startHarness } from "../harness.ts";

interface Row {
  project: Project;
  /** Where its definitions are. */
  definitions: string;
  /** An object, what kubectl shows of it, and what it says of its kind. */
  object: string;
  explained: [string, RegExp];
  /** An object that its rules refuse, and how. */
  refused: [string, RegExp];
}

const rows: Row[] = [
  {
    project: "cert-manager",
    definitions: "deploy/crds",
    object: `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: it}
spec: {secretName: s, dnsNames: [example.com], issuerRef: {name: ca, kind: Issuer}}
`,
    explained: ["certificates.cert-manager.io.spec.privateKey", /rotationPolicy\s+<string>/],
    refused: [
      `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: wrong}
spec: {secretName: s}
`,
      /spec\.issuerRef: Required value/,
    ],
  },
  {
    project: "prometheus-operator",
    definitions: "example/prometheus-operator-crd-full",
    object: `
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: it}
spec: {groups: [{name: g, partial_response_strategy: WARN, rules: [{record: a, expr: 1}]}]}
`,
    explained: ["prometheuses.spec.remoteWrite", /basicAuth\s+<Object>/],
    refused: [
      `
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: wrong}
spec: {groups: [{name: g, partial_response_strategy: never}]}
`,
      /partial_response_strategy: Invalid value: "never"/,
    ],
  },
  {
    project: "gateway-api",
    definitions: "config/crd/experimental",
    object: `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: it}
spec:
  parentRefs: [{name: a}, {name: b}]
  rules: [{matches: [{path: {type: PathPrefix, value: /}}], backendRefs: [{name: web, port: 80}]}]
`,
    explained: ["httproutes.spec.rules.matches.path", /enum: Exact, PathPrefix/],
    refused: [
      `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: wrong}
spec: {parentRefs: [{name: a, namespace: x}, {name: a, namespace: x}]}
`,
      /sectionName or port must be unique when parentRefs includes 2 or more references to the same parent/,
    ],
  },
  {
    project: "cluster-api",
    definitions: "core/config/crd/bases",
    object: `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: it}
spec: {clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/8]}}}
`,
    explained: ["clusters.spec.topology.workers", /machineDeployments\s+<\[\]Object>/],
    refused: [
      `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: wrong}
spec: {paused: perhaps}
`,
      /spec\.paused: Invalid value: "string"/,
    ],
  },
  {
    project: "keda",
    definitions: "config/crd/bases",
    object: `
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: it}
spec: {scaleTargetRef: {name: web}, triggers: [{type: cron, metadata: {timezone: UTC}}]}
`,
    explained: ["scaledjobs.spec.jobTargetRef.template.spec", /containers\s+<\[\]Object>/],
    refused: [
      `
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: wrong}
spec: {scaleTargetRef: {name: web}}
`,
      /spec\.triggers: Required value/,
    ],
  },
];

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness();
});
afterAll(() => harness.close());

/** What it printed; fails unless kubectl ends well. */
async function done(input: string, ...args: string[]): Promise<string> {
  const { stdout, stderr, code } = await harness.kubectlWith(input, ...args);
  expect({ args, code, stderr: code === 0 ? "" : stderr }).toEqual({ args, code: 0, stderr: "" });
  return stdout;
}

const yamlFiles = (dir: string) =>
  readdirSync(dir, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".yaml") && !name.endsWith("kustomization.yaml"))
    .map((name) => path.join(dir, name));

describe.skipIf(!hasKubectl()).each(rows)(
  "definitions of $project (needs: npm run foreign-tools)",
  ({ project, definitions, object, explained, refused }) => {
    const sources = sourcesOf(project);

    test.skipIf(!sources)("serve objects", { timeout: 120_000 }, async () => {
      const files = yamlFiles(path.join(sources ?? "", definitions));
      const args = files.flatMap((file) => ["-f", file]);
      // The first of two ways is without what an annotation could not hold.
      expect(await done("", "create", ...args)).toContain("created");
      await done("", "apply", "--server-side", "--force-conflicts", ...args);

      await done(object, "create", "-f", "-");
      // Who created it owns the lists, with the defaults in them.
      await done(object, "apply", "--server-side", "--force-conflicts", "-f", "-");
      const file = path.join(harness.directory, "object.yaml");
      writeFileSync(file, object);
      expect(await done("", "get", "-f", file)).toMatch(/^it\b/m);
      expect(await done("", "explain", explained[0])).toMatch(explained[1]);
      const { code, stderr } = await harness.kubectlWith(refused[0], "create", "-f", "-");
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(refused[1]) });
      await done("", "delete", "-f", file);
    });
  },
);

const gateway = sourcesOf("gateway-api");

test.skipIf(!gateway || !hasKubectl())(
  "the Gateway API's own wrong examples are refused (needs: npm run foreign-tools)",
  { timeout: 120_000 },
  async () => {
    const examples = yamlFiles(path.join(gateway ?? "", "hack/invalid-examples"));
    expect(examples.length).toBeGreaterThan(20);
    const taken: string[] = [];
    for (const file of examples) {
      const { code } = await harness.kubectlWith("", "apply", "--server-side", "-f", file);
      if (code === 0) taken.push(file);
    }
    expect(taken).toEqual([]);
  },
);
