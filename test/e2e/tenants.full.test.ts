/** The attacks of test/attacks/tenants.test.ts where `SPRY_TEST_ENGINE` says: on a real cluster they meet Kubernetes' own defences. */
import { onCluster, enginePlatform } from "../support/engine.ts";
import { hostileTenants } from "../support/hostile-tenants.ts";

const platform = enginePlatform();
hostileTenants(platform, {
  start: async () => 0,
  isStarted: true,
  why: onCluster ? undefined : "test/attacks/tenants.test.ts does it",
});
