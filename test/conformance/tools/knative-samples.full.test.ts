/**
 * Manifests with the shapes of those in Knative's documentation, applied with kubectl, with programs of its test suite. gRPC, WebSockets
 * and tags by header have rows of the suite itself (knative.full.test.ts).
 */
import { existsSync } from "node:fs";
import { freePort } from "@spry/test-kit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { knativeProgram } from "../../../tools/foreign-tools/knative.ts";
import { freeNodePort, KnativeTests, onMachine } from "../../support/knative-suite.ts";
import { Platform } from "../../support/platform.ts";

const lacks = [
  ...(existsSync(knativeProgram("e2e.test")) ? [] : ["npm run foreign-tools"]),
  ...(process.getuid?.() === 0 ? [] : ["root, for containers"]),
];
const title = (what: string) => (lacks.length > 0 ? `${what} (needs: ${lacks.join(", ")})` : what);
const rowMs = 120_000;

const gatewayPort = await freeNodePort();
const registryPort = await freePort();
const platform = new Platform({
  args: [
    "--no-example",
    "--sandbox=oci",
    `--gateway-port=${gatewayPort}`,
    `--allow-loopback=127.0.0.1:${registryPort}`,
  ],
});
const suite = new KnativeTests({ ...onMachine(platform), registryPort });
const image = (name: string) => `${suite.images}/${name}:latest`;

async function apply(name: string, yaml: string): Promise<void> {
  const head = `apiVersion: serving.knative.dev/v1
kind: Service
metadata:
  name: ${name}
  namespace: default
`;
  await platform.k("apply -f -", `${head}${yaml}`);
  await platform.k(`wait --for=condition=Ready ksvc/${name} --timeout=60s`);
}

describe.skipIf(lacks.length > 0)(title("manifests of Knative's documentation"), () => {
  beforeAll(async () => {
    await platform.start();
    await suite.prepare();
  }, 600_000);
  afterAll(async () => {
    await platform.remove();
    await suite.close();
  }, 60_000);

  test(
    "hello world",
    async () => {
      await apply(
        "hello",
        `spec:
  template:
    spec:
      containers:
        - image: ${image("helloworld")}
          ports:
            - containerPort: 8080
          env:
            - name: TARGET
              value: "World"
`,
      );
      const answer = await platform.call("hello.default");
      expect(answer).toMatchObject({ status: 200, body: expect.stringContaining("Hello World!") });
    },
    rowMs,
  );

  test(
    "autoscaling by concurrency: fifty requests at a time take several Pods",
    async () => {
      await apply(
        "autoscale-go",
        `spec:
  template:
    metadata:
      annotations:
        autoscaling.knative.dev/target: "10"
        autoscaling.knative.dev/max-scale: "4"
    spec:
      containers:
        - image: ${image("autoscale")}
`,
      );
      const end = performance.now() + 8_000;
      const statuses = new Set<number>();
      const client = async () => {
        while (performance.now() < end) {
          const { status } = await platform.call("autoscale-go.default", { path: "/?sleep=100" });
          statuses.add(status);
        }
      };
      await Promise.all(Array.from({ length: 50 }, client));
      expect([...statuses]).toEqual([200]);
      const replicas = "get deployment autoscale-go-00001-deployment -o jsonpath={.spec.replicas}";
      expect(Number(await platform.k(replicas))).toBeGreaterThan(1);
    },
    rowMs,
  );

  test(
    "blue and green: Revisions by name, shares and tags",
    async () => {
      const template = (name: string, program: string) => `spec:
  template:
    metadata:
      name: ${name}
    spec:
      containers:
        - image: ${image(program)}
`;
      await apply("blue-green", template("blue-green-first", "pizzaplanetv1"));
      await apply(
        "blue-green",
        `${template("blue-green-second", "pizzaplanetv2")}  traffic:
    - tag: current
      revisionName: blue-green-first
      percent: 50
    - tag: candidate
      revisionName: blue-green-second
      percent: 50
    - tag: latest
      latestRevision: true
      percent: 0
`,
      );
      const body = async (host: string) => (await platform.call(host)).body.trim();
      const [current, candidate] = [
        await body("current-blue-green.default"),
        await body("candidate-blue-green.default"),
      ];
      expect(current).not.toBe(candidate);
      expect(await body("latest-blue-green.default")).toBe(candidate);
      const seen = new Set<string>();
      for (let n = 0; n < 10; n++) seen.add(await body("blue-green.default"));
      expect(seen).toEqual(new Set([current, candidate]));
    },
    rowMs,
  );

  test(
    "two containers, one with a port",
    async () => {
      await apply(
        "two",
        `spec:
  template:
    spec:
      containers:
        - image: ${image("servingcontainer")}
          env:
            - name: FORWARD_PORT
              value: "8882"
          ports:
            - containerPort: 8881
        - image: ${image("sidecarcontainer")}
`,
      );
      const answer = await platform.call("two.default");
      expect(answer.body).toContain("Yay!! multi-container works");
    },
    rowMs,
  );

  test.each([
    ["a Secret", "secret", "secret:\n            secretName: from-secret"],
    ["a ConfigMap", "configmap", "configMap:\n            name: from-configmap"],
  ])(
    "%s as a volume",
    async (_what, kind, source) => {
      const word = kind === "secret" ? "secret generic" : "configmap";
      await platform.k(`create ${word} from-${kind} --from-literal=world=of-the-${kind}`);
      await apply(
        `from-${kind}`,
        `spec:
  template:
    spec:
      containers:
        - image: ${image("hellovolume")}
          volumeMounts:
            - name: mounted
              mountPath: /hello
              readOnly: true
      volumes:
        - name: mounted
          ${source}
`,
      );
      expect((await platform.call(`from-${kind}.default`)).body).toContain(`of-the-${kind}`);
    },
    rowMs,
  );
});
