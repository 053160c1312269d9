/** What kubectl asks of a server differs with its version: the same commands with each that is there. */
import { execFile, type ExecFileException } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { startControllers } from "@spry/machine";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { binaryOf, versions } from "../../../tools/real-apiserver/binaries.ts";
import { hasKubectl, type Harness, startHarness } from "../harness.ts";

const built = binaryOf("kubectl");
const kubectls: [string, string, boolean][] = [
  ["kubectl on the PATH", "kubectl", hasKubectl()],
  [`kubectl ${versions().kubernetes} (needs: npm run foreign-tools)`, built, existsSync(built)],
];

const deployment = (image: string) => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web, color: red}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "${image}", ports: [{containerPort: 80}]}]}
`;
const files: Record<string, string> = {
  "one.yaml": deployment("nginx:1"),
  "two.yaml": deployment("nginx:2"),
  "list.yaml": `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "1"}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {a: "1"}}
`,
  "review.yaml": `
apiVersion: authorization.k8s.io/v1
kind: SelfSubjectAccessReview
spec: {resourceAttributes: {verb: get, resource: pods}}
`,
  "mistaken-review.yaml": `
apiVersion: authorization.k8s.io/v1
kind: SelfSubjectAccessReview
spec: {resourceAttributes: {verb: get, resourcs: pods}}
`,
  "kustomization/kustomization.yaml": `
resources: [web.yaml]
namePrefix: k-
labels: [{pairs: {made: here}, includeSelectors: true}]
configMapGenerator: [{name: made, literals: [a=b]}]
images: [{name: nginx, newTag: "9"}]
`,
  "kustomization/web.yaml": deployment("nginx:1"),
};

/** Command → what it prints (stdout and stderr), and how it ends when not with 0. */
const commands: [string, RegExp | string, number?][] = [
  ["apply -f list.yaml", "configmap/a created\nconfigmap/b created\n"],
  ["apply -f list.yaml", "configmap/a unchanged\nconfigmap/b unchanged\n"],
  ["create -f review.yaml -o jsonpath={.status.allowed}", "true"],
  ["create -f mistaken-review.yaml", /unknown field "resourcs"/, 1],
  ["apply -f one.yaml", "deployment.apps/web created\n"],
  ["diff -f two.yaml", /^-.*nginx:1\n\+.*nginx:2$/m, 1],
  ["diff --server-side -f two.yaml", /^-.*nginx:1\n\+.*nginx:2$/m, 1],
  ["apply --server-side -f two.yaml", "deployment.apps/web serverside-applied\n"],
  ["apply view-last-applied deploy/web", /image: nginx:2/],
  ["apply -f one.yaml", "deployment.apps/web configured\n"],
  ["apply --server-side --field-manager=me -f two.yaml", /1 conflict/, 1],
  ["get deploy web -o wide", /^web +0\/2 .* main +nginx:1 +app=web/m],
  ["describe deploy web", /Image: +nginx:1/],
  [
    'patch deploy web --subresource=scale --type=merge -p {"spec":{"replicas":3}}',
    "scale.autoscaling/web patched\n",
  ],
  ["rollout restart deploy/web", /restarted/],
  ["rollout history deploy/web", /REVISION/],
  ["set image deploy/web main=nginx:3", /image updated/],
  ["scale deploy/web --replicas=1 --current-replicas=3", /scaled/],
  ["wait --for=jsonpath={.spec.replicas}=1 deploy/web", /condition met/],
  ["expose deploy/web --port=80", "service/web exposed\n"],
  ["create ingress i --rule=example.com/=web:80", "ingress.networking.k8s.io/i created\n"],
  ["describe ingress i", /web:80/],
  ["create job j --image=busybox -- true", "job.batch/j created\n"],
  ["create role r --verb=get --resource=pods", /created/],
  ["create quota q --hard=configmaps=10", "resourcequota/q created\n"],
  ["create token default --duration=10m", /^[\w-]+\.[\w-]+\.[\w-]+$/],
  ["auth can-i create pods", "yes\n"],
  ["auth whoami", /Username +admin/],
  ["explain deploy.spec.template --recursive", /containers\s+<\[\]Container>/],
  ["explain hpa --api-version=autoscaling/v1", /VERSION: +v1/],
  ["api-resources --verbs=list -o name", /^deployments.apps$/m],
  ["events --for=deploy/web", /ScalingReplicaSet/],
  ["set env deploy/web A=b", "deployment.apps/web env updated\n"],
  ["set env deploy/web --list", /^A=b$/m],
  [
    "set resources deploy/web --limits=cpu=1",
    "deployment.apps/web resource requirements updated\n",
  ],
  ["set serviceaccount deploy/web default", "deployment.apps/web serviceaccount updated\n"],
  ["rollout undo deploy/web", /deployment.apps\/web rolled back\n/],
  ["rollout pause deploy/web", "deployment.apps/web paused\n"],
  ["rollout resume deploy/web", "deployment.apps/web resumed\n"],
  ["rollout status deploy/web --watch=false", /Waiting for deployment/],
  ["label deploy web shade=dark", "deployment.apps/web labeled\n"],
  ["label deploy web shade=light", /already has a value \(dark\), and --overwrite is false/, 1],
  ["annotate deploy --all x=y", "deployment.apps/web annotated\n"],
  ["autoscale deploy web --max=3 --cpu-percent=50", /autoscaled/],
  ["create rolebinding rb --role=r --user=u", /created/],
  ["create poddisruptionbudget p --selector=a=b --min-available=1", /created/],
  ["create service nodeport s --tcp=80", "service/s created\n"],
  [
    "create secret docker-registry dr --docker-server=a --docker-username=b --docker-password=c",
    /created/,
  ],
  ["get deploy -o custom-columns=N:.metadata.name,R:.spec.replicas", /^N +R\nweb +1\n/],
  ["get deploy web -o go-template={{.spec.replicas}}", "1"],
  ["get deploy web -o yaml --show-managed-fields", /manager: kubectl-client-side-apply/],
  ["get all --no-headers", /^deployment.apps\/web/m],
  [
    "apply -f list.yaml --prune --all --prune-allowlist=core/v1/ConfigMap",
    /configmap\/a unchanged/,
  ],
  ['patch cm a --dry-run=server -p {"data":{"c":"d"}} -o jsonpath={.data.c}', "d"],
  ["replace --force -f list.yaml", /configmap\/a replaced/],
  ["debug pod/none --image=a", /pods "none" not found/, 1],
  ["get componentstatuses", /doesn't have a resource type "componentstatuses"/, 1],
  ["apply -k kustomization", /deployment.apps\/k-web created/],
  ["delete -k kustomization", /deployment.apps "k-web" deleted/],
  ["delete deploy web --cascade=orphan", /deleted/],
  ["get rs -l app=web -o name", /^replicaset.apps\/web-/],
];

let harness: Harness;
const ending = new AbortController();

beforeAll(async () => {
  harness = await startHarness();
  await startControllers({
    client: harness.client,
    signal: ending.signal,
  });
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(harness.directory, name)), { recursive: true });
    writeFileSync(path.join(harness.directory, name), text);
  }
});
afterAll(async () => {
  ending.abort();
  await harness.close();
});

describe.each(kubectls)("%s", (_, program, present) => {
  test.skipIf(!present)("does what people do with it", { timeout: 180_000 }, async () => {
    const namespace = program === "kubectl" ? "path" : "built";
    await run(program, "create", "namespace", namespace);
    await run(program, "-n", namespace, "wait", "--for=create", "serviceaccount/default");
    for (const [command, printed, code = 0] of commands) {
      const answer = await run(program, "-n", namespace, ...command.split(" "));
      const expected = typeof printed === "string" ? printed : expect.stringMatching(printed);
      expect.soft({ command, ...answer }).toEqual({ command, printed: expected, code });
    }
  });
});

function run(program: string, ...args: string[]): Promise<{ printed: string; code: number }> {
  const env = {
    PATH: process.env.PATH,
    HOME: harness.directory,
    KUBECONFIG: harness.kubeconfig,
  };
  return new Promise((resolve) => {
    const options = { cwd: harness.directory, env, timeout: 30_000 };
    execFile(program, args, options, (error: ExecFileException | null, stdout, stderr) => {
      resolve({ printed: stdout + stderr, code: error ? Number(error.code ?? -1) : 0 });
    });
  });
}
