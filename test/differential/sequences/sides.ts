/** The two clusters that are compared: the embedded API server with its controllers, and a real control plane. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createApiServer } from "@spry/apiserver";
import { httpsTransport, type Informer, KubeClient, loadKubeconfig, type Pod } from "@spry/kube";
import { startControllers } from "@spry/machine";
import { down, up } from "../../../tools/real-apiserver/cluster.ts";
import { stricterArguments } from "../stricter-defaults.ts";
import { measuringNode, serveMetrics } from "./metrics-server.ts";
import { playNode } from "./node.ts";
import { Observer } from "./observer.ts";

export interface Side {
  client: KubeClient;
  observer: Observer;
}

export interface Sides {
  embedded: Side;
  real: Side;
  stop(): Promise<void>;
}

export async function startSides(): Promise<Sides> {
  const scratch = mkdtempSync(path.join(tmpdir(), "sequences-"));
  const dir = path.join(scratch, "cluster");
  const ending = new AbortController();
  const { signal } = ending;
  const { kubeconfig } = await up(dir, signal, { apiServerArgs: stricterArguments(scratch) });
  const config = loadKubeconfig(kubeconfig);
  const transport = httpsTransport(config);
  const embeddedPods = () => [...(pods.embedded?.list() ?? [])];
  const pods: Partial<Record<"embedded" | "real", Informer<Pod>>> = {};
  const node = measuringNode(embeddedPods);
  const server = await createApiServer({ dataDir: ":memory:", kubelet: () => node });
  const embedded = new KubeClient(server.transport());
  const rootCa = config.certificateAuthority ?? "";
  await startControllers({ client: embedded, rootCa, signal });
  const side = async (name: "embedded" | "real", client: KubeClient): Promise<Side> => {
    pods[name] = await playNode(client, signal);
    return { client, observer: await Observer.start(client, signal) };
  };
  const sides = {
    embedded: await side("embedded", embedded),
    real: await side("real", new KubeClient(transport)),
  };
  const metrics = pods.real && (await serveMetrics(sides.real.client, pods.real, scratch));
  return {
    ...sides,
    async stop() {
      ending.abort();
      metrics?.close();
      transport.close();
      await server.close();
      await down(dir);
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}
