/** Spry on a real cluster with the face of `Platform`: what runs on one runs on the other. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { resources } from "@spry/kube";
import { dump, load } from "js-yaml";
import { gatewayExtension } from "../../packages/cli/src/platform/kubeconfig.ts";
import { gatewayName } from "../../packages/cli/src/install/gateway.ts";
import { InstalledCluster } from "./installed-cluster.ts";
import { type Answer, call, type CallOptions, callUntil } from "./calls.ts";
import { type PackageMirror, startPackageMirror } from "./package-mirror.ts";
import { run } from "./platform.ts";

const system = "kyma-system";

export class ClusterPlatform {
  readonly #cluster = new InstalledCluster();
  #packages: PackageMirror | undefined;
  #gateway = new URL("http://unknown.invalid");

  async start(): Promise<void> {
    await this.#cluster.start({ moreImages: ["gateway"] });
    const values = path.join(this.#cluster.scratch, "gateway.json");
    this.#packages = await startPackageMirror(this.#cluster.hostAddress);
    const buildEnvironment = { npm_config_registry: this.#packages.url };
    const gateway = { enabled: true, serviceType: "NodePort" };
    writeFileSync(values, JSON.stringify({ buildEnvironment, gateway }));
    const { code, stderr } = await this.#cluster.install("--values", values);
    if (code !== 0) throw new Error(`installing: ${stderr}`);
    const { client, nodeAddress } = this.#cluster;
    const target = { namespace: system, name: gatewayName };
    const service = await client.get(resources.services, target);
    this.#gateway = new URL(`http://${nodeAddress}:${service.spec?.ports?.[0]?.nodePort}`);
    this.#nameGateway();
  }

  remove(): Promise<void> {
    this.#packages?.close();
    return this.#cluster.stop();
  }

  get kubeconfig(): string {
    return path.join(this.#cluster.scratch, "kubeconfig");
  }

  /** As an operator would, so that `spry` finds Functions. */
  #nameGateway(): void {
    const config = load(readFileSync(this.#cluster.kubeconfig, "utf8")) as {
      clusters: { cluster: { extensions?: object[] } }[];
    };
    const extension = { name: gatewayExtension, extension: { url: this.#gateway.href } };
    for (const { cluster } of config.clusters) cluster.extensions = [extension];
    writeFileSync(this.kubeconfig, dump(config), { mode: 0o600 });
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
    return this.#cluster.spryWith(this.kubeconfig, args, input);
  }

  call(host: string, options: CallOptions = {}): Promise<Answer> {
    const { hostname, port } = this.#gateway;
    return call(port, `${host}.localhost`, { address: hostname, ...options });
  }

  callUntil(
    host: string,
    fits: (answer: Answer) => boolean,
    options: { path?: string; timeoutMs?: number } = {},
  ): Promise<Answer> {
    return callUntil(() => this.call(host, options), fits, options.timeoutMs);
  }
}
