/** Which engine the journeys run on: one machine, or with `SPRY_TEST_ENGINE=cluster` a real Kubernetes with Spry installed. */
import { afterAll, beforeAll, beforeEach, inject } from "vitest";
import { ClusterPlatform } from "./cluster-platform.ts";
import { Platform } from "./platform.ts";

const startMs = 120_000;
/** On a cluster until the last Pod of the file has ended. */
const removeMs = 300_000;

export const onCluster = inject("engine") === "cluster";

/** A platform for all tests of a file, which are skipped where the engine cannot be. */
export function enginePlatform(
  prepare: (platform: Platform | ClusterPlatform) => Promise<void> = async () => {},
  /** Of `spry up`, on one machine. */
  args: readonly string[] = [],
): Platform | ClusterPlatform {
  const place = inject("place");
  const reason = inject("noPlace");
  const platform = onCluster
    ? new ClusterPlatform(() => place!)
    : new Platform({ args: ["--no-example", ...args] });
  beforeAll(async () => {
    if (reason) return;
    await platform.start();
    await prepare(platform);
  }, startMs);
  beforeEach((context) => {
    if (reason) context.skip(reason);
  });
  afterAll(async () => {
    if (!reason) await platform.remove();
  }, removeMs);
  return platform;
}
