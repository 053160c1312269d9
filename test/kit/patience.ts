/**
 * How long a test waits, in milliseconds, before it calls a condition false. The only place where such limits are chosen:
 * each is far above what a quiet machine needs, because a busy machine is not a failure, and costs nothing when all is well.
 */
export const patience = {
  /** A condition inside one process or between a few of them. */
  condition: 15_000,
  /** A condition behind which stand builds, image pulls and Pods. */
  platform: 60_000,
  /** The same on a real cluster, whose images are pulled and whose probes run at intervals of seconds. */
  cluster: 120_000,
  /** One test of conditions in a process: it only ends what would never end. */
  test: 60_000,
  /** One test with whole platforms. */
  platformTest: 240_000,
} as const;
