/** Which engine the journeys run on: one machine, or with `SPRY_TEST_ENGINE=cluster` a real Kubernetes with Spry installed. */
import { afterAll, beforeAll } from "vitest";
import { ClusterPlatform } from "./cluster-platform.ts";
import { whyNoInstallation } from "./installed-cluster.ts";
import { Platform } from "./platform.ts";

const engine = process.env["SPRY_TEST_ENGINE"] ?? "machine";
if (engine !== "machine" && engine !== "cluster") {
  throw new Error(`SPRY_TEST_ENGINE=${engine}: it is machine (the default) or cluster`);
}
const startMs = 400_000;

export const onCluster = engine === "cluster";

/** A platform for all tests of a file. Where the engine cannot be, starting says why. */
export function enginePlatform(): Platform | ClusterPlatform {
  const platform = onCluster ? new ClusterPlatform() : new Platform();
  beforeAll(async () => {
    const reason = onCluster ? whyNoInstallation() : undefined;
    if (reason) throw new Error(`SPRY_TEST_ENGINE=cluster: ${reason}`);
    await platform.start();
  }, startMs);
  afterAll(() => platform.remove(), startMs);
  return platform;
}
