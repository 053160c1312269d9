/**
 * Two hostile tenants of one platform, each with `edit` in a namespace of its own and a Function to attack from: what each
 * tries on the other. On both sandboxes (`SPRY_TEST_SANDBOX`) and, with `SPRY_TEST_ENGINE=cluster` in the project e2e, on a real cluster.
 * Images are the affair of registry.test.ts, the machine that of sandbox.test.ts.
 */
import { describe } from "vitest";
import { Platform } from "../support/platform.ts";
import { hostileTenants } from "../support/hostile-tenants.ts";
import { hasRuntime } from "../support/host-address.ts";

const isRoot = process.platform === "linux" && process.getuid?.() === 0;

describe.each([
  { sandbox: "process", why: undefined },
  { sandbox: "oci", why: isRoot && hasRuntime() ? undefined : "needs root and runc" },
])("in the sandbox $sandbox", ({ sandbox, why }) => {
  const platform = new Platform({ args: ["--no-example", `--sandbox=${sandbox}`] });
  hostileTenants(platform, {
    start: () => platform.start(),
    sharesLoopback: sandbox === "process",
    why,
  });
});
