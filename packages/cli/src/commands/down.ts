import { existsSync, rmSync } from "node:fs";
import path from "node:path";
import { lifeOf, type ProcessIdentity, signalIdentity } from "@spry/kube";
import { processSandbox } from "@spry/machine";
import { openDataDir } from "../platform/data-dir.ts";
import { ownerOf } from "../platform/data-dir-lock.ts";
import { endGateway } from "../platform/gateway-process.ts";
import { UserError } from "../user-error.ts";

export interface DownOptions {
  dataDir: string;
}

const stopTimeoutMs = 30_000;

/** Stops a platform that runs; of one that crashed, ends what it left running. Data stays. */
export async function down(options: DownOptions): Promise<void> {
  const root = path.resolve(options.dataDir);
  if (!existsSync(root))
    throw new UserError(`data directory ${root} does not exist`, "specify it with --data-dir");
  const owner = ownerOf(root);
  if (owner && signalIdentity(owner, "SIGINT")) {
    await ended(owner);
    console.error("stopped");
    return;
  }
  if (owner && lifeOf(owner) !== "dead")
    throw new UserError(
      `the platform runs as process ${owner.pid}, which this command may not stop`,
      owner.pid === 1 ? "stop its container" : "stop it as the user that has started it",
    );
  const dataDir = openDataDir(root);
  try {
    await endGateway(root);
    const pods = await processSandbox({ dataDir: dataDir.node }).recover();
    await Promise.all(pods.map(({ sandbox }) => sandbox.close()));
    rmSync(dataDir.endpoints, { force: true });
    console.error(`the platform was not running; ended ${pods.length} Pods that it had left`);
  } finally {
    dataDir.unlock();
  }
}

async function ended(owner: ProcessIdentity): Promise<void> {
  const deadline = performance.now() + stopTimeoutMs;
  while (lifeOf(owner) !== "dead") {
    if (performance.now() > deadline) {
      throw new UserError(
        `process ${owner.pid} has not ended after ${stopTimeoutMs / 1000} s`,
        `check what it does, or end it with kill -9 ${owner.pid}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
