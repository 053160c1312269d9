/** The two servers that are compared: the embedded one in process, the real one from its cached programs. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createApiServer } from "@spry/apiserver";
import { httpsTransport, loadKubeconfig, type Transport } from "@spry/kube";
import { endProcess } from "../../tools/real-apiserver/background-process.ts";
import { missingPrograms } from "../../tools/real-apiserver/binaries.ts";
import { down, up } from "../../tools/real-apiserver/cluster.ts";
import { stricterArguments } from "./stricter-defaults.ts";

const endGraceMs = 10_000;

/** Why nothing can be compared here; undefined when it can. */
export function whyNoComparison(): string | undefined {
  if (missingPrograms().length === 0) return undefined;
  return "there is no kube-apiserver of our own (npm run real-apiserver -- build)";
}

export interface Servers {
  embedded: Transport;
  real: Transport;
  stop(): Promise<void>;
}

/** Starts both without controllers, so that nothing but the requests changes an object. */
export async function startServers(): Promise<Servers> {
  const scratch = mkdtempSync(path.join(tmpdir(), "differential-"));
  const dir = path.join(scratch, "cluster");
  const { kubeconfig, processes } = await up(dir, new AbortController().signal, {
    apiServerArgs: stricterArguments(scratch),
  });
  for (const one of processes) {
    if (!["etcd", "kube-apiserver"].includes(one.name)) await endProcess(one, endGraceMs);
  }
  const embedded = await createApiServer({ dataDir: ":memory:" });
  const real = httpsTransport(loadKubeconfig(kubeconfig));
  return {
    embedded: embedded.transport(),
    real,
    async stop() {
      real.close();
      await embedded.close();
      await down(dir);
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}
