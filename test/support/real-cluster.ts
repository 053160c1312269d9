/** A real control plane for tests: the one that KUBECONFIG names, else one of our own from the cached programs. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  type HttpsTransport,
  httpsTransport,
  KubeClient,
  loadKubeconfig,
  messageOf,
} from "@spry/kube";
import { patience } from "@spry/test-kit";
import { missingPrograms } from "../../tools/real-apiserver/binaries.ts";
import { type Cluster, type ClusterOptions, down, up } from "../../tools/real-apiserver/cluster.ts";
import { whyNoNode } from "../../tools/real-apiserver/node/requirements.ts";

const named = process.env["KUBECONFIG"];

/** Why no test can run here; undefined when they can. With `node`: those that need running Pods. */
export function whyNoCluster(options: { node?: boolean } = {}): string | undefined {
  if (named) return undefined;
  if (missingPrograms().length === 0) return options.node ? whyNoNode() : undefined;
  return "KUBECONFIG is not set, and there is no control plane of our own (npm run real-apiserver -- build)";
}

export class RealCluster {
  #transport: HttpsTransport | undefined;
  #client: KubeClient | undefined;
  #scratch: string | undefined;

  /** The cluster, when it is one of our own. */
  own: Cluster | undefined;

  async start(options: ClusterOptions = {}): Promise<void> {
    let kubeconfig: string | undefined;
    if (!named) {
      this.#scratch = mkdtempSync(path.join(tmpdir(), "real-cluster-"));
      const dir = path.join(this.#scratch, "cluster");
      this.own = await up(dir, new AbortController().signal, options);
      ({ kubeconfig } = this.own);
    }
    this.#transport = httpsTransport(loadKubeconfig(kubeconfig));
    this.#client = new KubeClient(this.#transport, { fieldManager: "spry-test" });
    if (named) await reachable(named, this.#client);
  }

  get client(): KubeClient {
    if (!this.#client) throw new Error("the cluster has not been started");
    return this.#client;
  }

  /** Ends a control plane of our own; one that KUBECONFIG names goes on. */
  async stop(): Promise<void> {
    this.#transport?.close();
    if (!this.#scratch) return;
    await down(path.join(this.#scratch, "cluster"));
    rmSync(this.#scratch, { recursive: true, force: true });
  }
}

/** Rejects with a sentence, and the way out, unless the cluster that KUBECONFIG names answers. */
async function reachable(kubeconfig: string, client: KubeClient): Promise<void> {
  try {
    await client.raw("GET", "/version", { signal: AbortSignal.timeout(patience.condition) });
  } catch (cause) {
    throw new Error(
      `the cluster of KUBECONFIG=${kubeconfig} cannot be reached (${messageOf(cause)}): ` +
        "start it, or unset KUBECONFIG for a control plane that the tests start themselves",
      { cause },
    );
  }
}
