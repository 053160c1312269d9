/** The two clusters that are compared: the embedded API server with its controllers, and a real control plane. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createApiServer } from "@spry/apiserver";
import { httpsTransport, KubeClient, loadKubeconfig } from "@spry/kube";
import { startControllers } from "@spry/machine";
import { down, up } from "../../../tools/real-apiserver/cluster.ts";
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
  const { kubeconfig } = await up(dir, signal);
  const config = loadKubeconfig(kubeconfig);
  const transport = httpsTransport(config);
  const server = await createApiServer({ dataDir: ":memory:" });
  const embedded = new KubeClient(server.transport());
  await startControllers({
    client: embedded,
    kubelet: () => undefined,
    rootCa: config.certificateAuthority ?? "",
    signal,
  });
  const side = async (client: KubeClient): Promise<Side> => {
    await playNode(client, signal);
    return { client, observer: await Observer.start(client, signal) };
  };
  return {
    embedded: await side(embedded),
    real: await side(new KubeClient(transport)),
    async stop() {
      ending.abort();
      transport.close();
      await server.close();
      await down(dir);
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}
