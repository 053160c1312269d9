/** Which engine the journeys run on: one machine, or with `SPRY_TEST_ENGINE=cluster` a real Kubernetes with Spry installed. */
import { afterAll, beforeAll, beforeEach } from "vitest";
import { ClusterPlatform } from "./cluster-platform.ts";
import { whyNoInstallation } from "./installed-cluster.ts";
import { Platform } from "./platform.ts";

const engine = process.env["SPRY_TEST_ENGINE"] ?? "machine";
if (engine !== "machine" && engine !== "cluster") {
  throw new Error(`SPRY_TEST_ENGINE=${engine}: it is machine (the default) or cluster`);
}
const startMs = 400_000;

const onCluster = engine === "cluster";

/** A platform for all tests of a file, which are skipped where the engine cannot be. */
export function enginePlatform(
  prepare: (platform: Platform | ClusterPlatform) => Promise<void> = async () => {},
): Platform | ClusterPlatform {
  const platform = onCluster ? new ClusterPlatform() : new Platform();
  const reason = onCluster ? whyNoInstallation() : undefined;
  beforeAll(async () => {
    if (reason) return;
    await platform.start();
    await prepare(platform);
  }, startMs);
  beforeEach((context) => {
    if (reason) context.skip(reason);
  });
  afterAll(() => platform.remove(), startMs);
  return platform;
}
