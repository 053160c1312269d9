/** Spry on a real cluster with the face of `Platform`: what runs on one runs on the other. */
import { type ClusterPlace } from "./cluster-place.ts";
import { type Answer, call, type CallOptions, callUntil } from "./calls.ts";
import { filesBelow } from "./files-below.ts";
import { root, run } from "./platform.ts";
import path from "node:path";

const main = path.join(root, "packages/cli/bin/spry.mjs");

const listedMs = 15_000;

/** Of Kubernetes and of Spry; all others are a test's. */
const lasting = /^(default|kube-.*|kyma-system)$/;

export class ClusterPlatform {
  readonly #place: () => ClusterPlace;

  /** The place is asked for when the tests run: where there is none, they are skipped. */
  constructor(place: () => ClusterPlace) {
    this.#place = place;
  }

  /** It runs already. */
  async start(): Promise<void> {}

  /** What the tests of one file have made: the next file finds the cluster as this one did. */
  async remove(): Promise<void> {
    const everywhere = "--all --all-namespaces --ignore-not-found";
    await this.k(`delete functions ${everywhere} --timeout=120s`);
    await this.k(`delete ksvc ${everywhere} --timeout=120s`);
    const namespaces = (await this.k("get namespaces -o name")).trim().split("\n");
    for (const each of namespaces) {
      const name = each.replace("namespace/", "");
      // One of the file before may be going just now.
      const options = "--wait=false --ignore-not-found";
      if (!lasting.test(name)) await this.k(`delete namespace ${name} ${options}`);
    }
    const ours = "-l !serverless.kyma-project.io/config --ignore-not-found";
    await this.k(`delete cronjobs,jobs,secrets,configmaps -n default ${ours}`);
    const children = "get deployments,services,pods -A -l serverless.kyma-project.io/function-name";
    for (let left = "?"; left !== "";) left = await this.k(`${children} -o name`);
  }

  get kubeconfig(): string {
    return this.#place().kubeconfig;
  }

  get hostAddress(): string {
    return this.#place().hostAddress;
  }

  kubectl(args: string[], input?: string) {
    return run("kubectl", ["--kubeconfig", this.kubeconfig, ...args], input);
  }

  async k(command: string, input?: string): Promise<string> {
    const result = await this.kubectl(command.split(" "), input);
    if (result.code !== 0) throw new Error(`kubectl ${command}: ${result.stderr}${result.stdout}`);
    return result.stdout;
  }

  spry(args: string[], input?: string) {
    const all = [main, "--kubeconfig", this.kubeconfig, ...args];
    return run(process.execPath, all, input);
  }

  get gateway(): URL {
    return new URL(this.#place().gateway);
  }

  get gatewayTls(): URL {
    return new URL(this.#place().gatewayTls);
  }

  get webhooks(): string {
    return this.#place().webhooks;
  }

  /** A Function may run before Kubernetes has listed the address of its first Pod: so long a caller waits. */
  async call(host: string, options: CallOptions = {}): Promise<Answer> {
    const { hostname, port } = this.gateway;
    for (const end = performance.now() + listedMs; ;) {
      const answer = await call(port, `${host}.localhost`, { address: hostname, ...options });
      const isUnlisted = answer.status === 503 && /has no Pod that is ready/.test(answer.body);
      if (!isUnlisted || performance.now() > end) return answer;
    }
  }

  callUntil(
    host: string,
    fits: (answer: Answer) => boolean,
    options: { path?: string; timeoutMs?: number } = {},
  ): Promise<Answer> {
    return callUntil(() => this.call(host, options), fits, options.timeoutMs);
  }

  /** Of the platform's own programs. */
  async log(): Promise<string> {
    const which = "app.kubernetes.io/name in (serverless-controller,serverless-docker-registry)";
    const args = ["logs", "-n", "kyma-system", "-l", which, "--tail=-1"];
    return (await this.kubectl(args)).stdout;
  }

  /** Of the volumes that there are, the one that its claim has got. */
  registryDirectory(): string {
    const volumes = this.registryFiles().map((file) =>
      path.relative(this.#place().registryFiles, file),
    );
    return path.join(this.#place().registryFiles, volumes[0]?.split(path.sep)[0] ?? "");
  }

  registryFiles(): string[] {
    return filesBelow(this.#place().registryFiles);
  }

  /** Every controller ends without a word, the leader among them; others come up. */
  async crash(): Promise<void> {
    const which = "-n kyma-system -l app.kubernetes.io/name=serverless-controller";
    await this.k(`delete pods ${which} --force --grace-period=0`);
    await this.k("rollout status deployment/serverless-controller -n kyma-system --timeout=60s");
  }

  /** What is on the node's disk because of Pods. */
  podFiles(): string[] {
    return this.#place().podFiles.flatMap(filesBelow);
  }
}
