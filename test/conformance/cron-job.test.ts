/** CronJobs as people handle them with kubectl, run by our controllers. */
import { startControllers } from "@spry/machine";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Harness, hasKubectl, startHarness } from "./harness.ts";

let harness: Harness;
const ending = new AbortController();

beforeAll(async () => {
  harness = await startHarness();
  await startControllers({
    client: harness.client,
    signal: ending.signal,
  });
});
afterAll(async () => {
  ending.abort();
  await harness.close();
});

describe.runIf(hasKubectl())("kubectl", () => {
  test("creates a CronJob and lists it", async () => {
    // It does not come due while it is looked at.
    const args = ["--image=example.org/task:1", "--schedule=0 0 29 2 *", "--", "date"];
    await harness.kubectl("create", "cronjob", "tick", ...args);
    const listed = await harness.kubectl("get", "cronjobs");
    expect(listed).toMatch(
      /^NAME\s+SCHEDULE\s+TIMEZONE\s+SUSPEND\s+ACTIVE\s+LAST SCHEDULE\s+AGE\ntick\s+0 0 29 2 \*\s+<none>\s+False\s+0\s+<none>/,
    );
  });

  test("starts one at once with create job --from", async () => {
    await harness.kubectl("create", "job", "now", "--from=cronjob/tick");
    await expect
      .poll(() => harness.kubectl("get", "pods", "-l", "job-name=now", "-o", "name"))
      .toMatch(/^pod\/now-/);
    const owner = "jsonpath={.metadata.ownerReferences[0].kind}/{.metadata.annotations}";
    expect(await harness.kubectl("get", "job", "now", "-o", owner)).toBe(
      'CronJob/{"cronjob.kubernetes.io/instantiate":"manual"}',
    );
  });

  test("deletes it with its Jobs and their Pods", async () => {
    await harness.kubectl("delete", "cronjob", "tick");
    await expect.poll(() => harness.kubectl("get", "jobs,pods", "-o", "name")).toBe("");
  });
});
