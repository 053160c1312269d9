/** What people do with kubectl, done with the real one over TLS. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { resources } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Harness, hasKubectl, startHarness } from "./harness.ts";

let harness: Harness;
const kubectl = (...args: string[]) => harness.kubectl(...args);

const deployment = (image = "nginx:1") => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "${image}", ports: [{containerPort: 80}], env: [{name: A, value: "1"}]}
`;
const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns:
    - {name: Size, type: string, jsonPath: .spec.size}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: string, enum: [small, large], description: How large it is.}
              replicas: {type: integer, default: 1}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`;
const widget = (spec: string) => `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: ${spec}
`;
const pod = (name: string) => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, labels: {app: ${name}}}
spec: {containers: [{name: main, image: "a:1"}]}
`;

async function apply(manifest: string, ...args: string[]): Promise<string> {
  const { stdout, stderr, code } = await harness.kubectlWith(manifest, "apply", "-f", "-", ...args);
  if (code !== 0) throw new Error(stderr);
  return (stdout + stderr).trim();
}

async function bind(name: string): Promise<void> {
  const metadata = { name, namespace: "default" };
  const binding = {
    apiVersion: "v1",
    kind: "Binding",
    metadata,
    target: { kind: "Node", name: "n1" },
  };
  await harness.client.create(resources.pods, binding as never, { subresource: "binding" });
}

describe.skipIf(!hasKubectl())("kubectl", () => {
  beforeAll(async () => {
    harness = await startHarness({
      kubelet: () => (request) =>
        Promise.resolve(new Response(`log of ${new URL(request.url).pathname}\n`)),
    });
  });
  afterAll(() => harness.close());

  test("finds the server's version, addresses and resources", async () => {
    expect(await kubectl("version")).toMatch(/Server Version: v1\.\d+\.\d+\+spry/);
    expect(await kubectl("cluster-info")).toContain(harness.url);
    const listed = await kubectl("api-resources", "--no-headers");
    expect(listed).toMatch(/^deployments\s+deploy\s+apps\/v1\s+true\s+Deployment$/m);
  });

  test("applies a built-in kind, changes it, shows what would change", async () => {
    expect(await apply(deployment())).toBe("deployment.apps/web created");
    expect(await apply(deployment())).toBe("deployment.apps/web unchanged");
    const diff = await harness.kubectlWith(deployment("nginx:2"), "diff", "-f", "-");
    expect(diff.code).toBe(1);
    expect(diff.stdout).toMatch(/^-\s+- image: nginx:1|^-.*nginx:1/m);
    expect(await apply(deployment("nginx:2"))).toBe("deployment.apps/web configured");
    expect(await kubectl("get", "deploy", "web", "-o", "wide", "--no-headers")).toMatch(
      /^web\s+0\/2\s+0\s+0\s+\d+s\s+main\s+nginx:2\s+app=web\s*$/,
    );
  });

  test("scales, labels, annotates, patches and edits", async () => {
    await apply(deployment());
    expect(await kubectl("scale", "deploy/web", "--replicas=4")).toContain("scaled");
    await kubectl("label", "deploy", "web", "color=red");
    await kubectl("annotate", "deploy", "web", "note=x");
    await kubectl(
      "patch",
      "deploy",
      "web",
      "-p",
      '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"b:2"}]}}}}',
    );
    await kubectl(
      "patch",
      "deploy",
      "web",
      "--type=json",
      "-p",
      '[{"op":"add","path":"/spec/paused","value":true}]',
    );
    await kubectl("patch", "deploy", "web", "--type=merge", "-p", '{"spec":{"minReadySeconds":3}}');
    const script = path.join(harness.directory, "editor");
    writeFileSync(script, '#!/bin/sh\nsed -i s/color:\\ red/color:\\ blue/ "$1"\n', {
      mode: 0o755,
    });
    await kubectl("edit", "deploy", "web");
    const shown = JSON.parse(await kubectl("get", "deploy", "web", "-o", "json"));
    expect(shown).toMatchObject({
      metadata: { labels: { app: "web", color: "blue" }, annotations: { note: "x" } },
      spec: {
        replicas: 4,
        minReadySeconds: 3,
        paused: true,
        template: {
          spec: { containers: [{ name: "main", image: "b:2", env: [{ name: "A", value: "1" }] }] },
        },
      },
    });
  });

  test("creates with its own commands", async () => {
    await kubectl("create", "configmap", "made", "--from-literal=a=b");
    await kubectl("create", "secret", "generic", "made", "--from-literal=a=b");
    await kubectl("create", "job", "made", "--image=a", "--", "echo", "hi");
    await kubectl("create", "deploy", "made", "--image=a", "--replicas=0");
    await kubectl("autoscale", "deploy", "made", "--min=1", "--max=3");
    expect(await kubectl("get", "cm", "made", "-o", "jsonpath={.data.a}")).toBe("b");
    expect(await kubectl("get", "secret", "made", "-o", "jsonpath={.data.a}")).toBe("Yg==");
    expect(await kubectl("get", "deploy", "made", "-o", "jsonpath={.spec.replicas}")).toBe("0");
    expect(await kubectl("get", "hpa", "made", "--no-headers")).toMatch(
      /^made\s+Deployment\/made\s+cpu: <unknown>\/80%\s+1\s+3/,
    );
    expect(
      await kubectl(
        "get",
        "job",
        "made",
        "-o",
        "jsonpath={.spec.template.spec.containers[0].command}",
      ),
    ).toBe('["echo","hi"]');
  });

  test("reads logs, follows them, describes and waits", async () => {
    await apply(pod("p"));
    await bind("p");
    expect(await kubectl("logs", "p")).toBe("log of /containerLogs/default/p/main\n");
    expect(await kubectl("logs", "-f", "p", "-c", "main")).toBe(
      "log of /containerLogs/default/p/main\n",
    );
    const { uid } = (await harness.client.get(resources.pods, { name: "p", namespace: "default" }))
      .metadata;
    const event = {
      metadata: { name: "e", namespace: "default" },
      involvedObject: { kind: "Pod", name: "p", namespace: "default", uid },
      reason: "Pulled",
      message: "image pulled",
      type: "Normal",
    };
    await harness.client.create(resources.events, event as never);
    const described = await kubectl("describe", "pod", "p");
    expect(described).toMatch(/Node:\s+n1\//);
    expect(described).toContain("image pulled");
    expect(await kubectl("wait", "pod/p", "--for=jsonpath={.spec.nodeName}=n1")).toContain(
      "condition met",
    );
    expect(
      await kubectl(
        "get",
        "pods",
        "-l",
        "app=p",
        "--field-selector=spec.nodeName=n1",
        "-A",
        "-o",
        "name",
      ),
    ).toBe("pod/p\n");
    expect(await kubectl("delete", "pod", "p", "--grace-period=0", "--force")).toContain("deleted");
  });

  test("watches", async () => {
    await kubectl("create", "configmap", "seen");
    const args = ["get", "cm", "-w", "--no-headers", "--field-selector=metadata.name=seen"];
    const { directory: HOME, kubeconfig: KUBECONFIG } = harness;
    const env = { PATH: process.env.PATH, HOME, KUBECONFIG };
    const watching = spawn("kubectl", args, { env });
    onTestFinished(() => void watching.kill());
    let output = "";
    watching.stdout.on("data", (chunk) => (output += chunk));
    // Once it has listed it watches.
    await expect.poll(() => output).toMatch(/^seen\s+0/);
    await kubectl("patch", "configmap", "seen", "-p", '{"data":{"a":"b"}}');
    await expect.poll(() => output).toMatch(/^seen\s+0.*\nseen\s+1/);
  });

  test("deletes with its dependents, orphans, or waits for them", async () => {
    await apply(deployment());
    await kubectl("delete", "deploy", "web", "--cascade=foreground", "--wait=false");
    expect(await kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.finalizers}")).toBe(
      '["foregroundDeletion"]',
    );
    await kubectl(
      "patch",
      "deploy",
      "web",
      "--type=merge",
      "-p",
      '{"metadata":{"finalizers":null}}',
    );
    await expect(kubectl("get", "deploy", "web")).rejects.toThrow(
      'deployments.apps "web" not found',
    );
  });

  test("tries without doing", async () => {
    const { stdout } = await harness.kubectlWith(
      pod("dry"),
      "create",
      "-f",
      "-",
      "--dry-run=server",
    );
    expect(stdout).toBe("pod/dry created (server dry run)\n");
    await expect(kubectl("get", "pod", "dry")).rejects.toThrow('pods "dry" not found');
  });

  test.each([
    [
      "selector that does not match",
      deployment().replace("labels: {app: web}}\n    spec", "labels: {app: other}}\n    spec"),
      "`selector` does not match template `labels`",
    ],
    [
      "container without image",
      pod("bad").replace('image: "a:1"', "command: [a]"),
      "spec.containers[0].image: Required value",
    ],
    ["name that is none", pod("Bad_Name"), "a lowercase RFC 1123 subdomain must consist of"],
    [
      "field that is not known",
      pod("bad").replace("spec: {", "spec: {foo: 1, "),
      'strict decoding error: unknown field "spec.foo"',
    ],
    [
      "amount that is none",
      pod("bad").replace('image: "a:1"', 'image: "a:1", resources: {limits: {cpu: much}}'),
      "quantities must match the regular expression",
    ],
  ])("gets a message about a %s", async (_, manifest, message) => {
    await expect(apply(manifest)).rejects.toThrow(message);
  });

  describe("with a kind of one's own", () => {
    beforeAll(async () => {
      await apply(definition);
      await kubectl("wait", "--for=condition=established", "crd/widgets.example.com");
    });

    test("applies, prints its columns, scales", async () => {
      expect(await apply(widget("{size: small}"))).toBe("widget.example.com/w created");
      expect(await apply(widget("{size: large}"))).toBe("widget.example.com/w configured");
      expect(await kubectl("get", "wd")).toMatch(/^NAME\s+SIZE\s+READY\nw\s+large\s*\n$/);
      await kubectl("scale", "wd", "w", "--replicas=3");
      expect(await kubectl("get", "wd", "w", "-o", "jsonpath={.spec}")).toBe(
        '{"replicas":3,"size":"large"}',
      );
      expect(await kubectl("get", "all", "-o", "name")).toContain("widget.example.com/w");
    });

    test("waits for a condition of its status", async () => {
      await apply(widget("{size: small}"));
      await kubectl(
        "patch",
        "wd",
        "w",
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}',
      );
      expect(await kubectl("wait", "wd/w", "--for=condition=Ready")).toContain("condition met");
    });

    test("explains it", async () => {
      const explained = await kubectl("explain", "widget.spec");
      expect(explained).toContain("How large it is.");
      expect(await kubectl("explain", "deployment.spec.strategy")).toContain("rollingUpdate");
    });

    test("says what is wrong in Kubernetes' words", async () => {
      await expect(apply(widget("{size: tiny}"))).rejects.toThrow(
        'spec.size: Unsupported value: "tiny": supported values: "small", "large"',
      );
      await expect(apply(widget("{size: small, foo: 1}"))).rejects.toThrow(
        'unknown field "spec.foo"',
      );
      const warned = await apply(widget("{size: small, foo: 1}"), "--validate=warn");
      expect(warned).toContain('Warning: unknown field "spec.foo"');
    });

    test("applies server-side, and tells conflicts", async () => {
      await kubectl("delete", "wd", "--all");
      expect(await apply(widget("{size: small}"), "--server-side")).toBe(
        "widget.example.com/w serverside-applied",
      );
      const failure = apply(widget("{size: large}"), "--server-side", "--field-manager=other");
      await expect(failure).rejects.toThrow(
        'Apply failed with 1 conflict: conflict with "kubectl": .spec.size',
      );
      await apply(
        widget("{size: large}"),
        "--server-side",
        "--field-manager=other",
        "--force-conflicts",
      );
      expect(await kubectl("get", "wd", "w", "-o", "jsonpath={.spec.size}")).toBe("large");
    });

    test("removes it with all its objects", async () => {
      await kubectl("delete", "crd", "widgets.example.com");
      await expect(kubectl("get", "widgets.example.com")).rejects.toThrow();
    });
  });
});

test("a client without a valid certificate is refused", async () => {
  const other = await startHarness({}, { guest: "/CN=guest" });
  try {
    const configured = [
      "--client-certificate",
      path.join(other.directory, "guest.crt"),
      "--client-key",
      path.join(other.directory, "guest.key"),
    ];
    await expect(other.kubectl("get", "pods", ...configured)).rejects.toThrow(
      'pods is forbidden: User "guest" cannot list resource "pods" in API group "" in the namespace "default"',
    );
  } finally {
    await other.close();
  }
});
