/** Who a runtime that waits is for: Python's Functions as well, and no Pod that may not use the image. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { deployOnDemand, untilZero } from "../support/on-demand.ts";
import { Platform } from "../support/platform.ts";
import { impatientServing } from "../support/serving-settings.ts";
import { untilTrue } from "../support/until-true.ts";
import { coldAndWarm, figure } from "../support/warm-starts.ts";

const limitMs = 180_000;
const waitMs = 60_000;
const platform = new Platform({ args: ["--no-example", "--sandbox=process", "--warm=2"] });

beforeAll(async () => {
  await platform.start();
  await platform.k("apply -f -", impatientServing);
}, limitMs);
afterAll(() => platform.remove(), limitMs);

const python = `import os, sys
def main(event, context):
    return {"env": dict(os.environ), "cwd": os.getcwd(), "program": sys.argv[0]}
`;

test(
  "a Python Function from zero becomes the process that waited",
  async () => {
    await deployOnDemand(platform, "snake", python, { runtime: "python312" });
    await coldAndWarm(platform, "snake");
  },
  limitMs,
);

test(
  "a Pod of another namespace does not take what waits for an image that it may not use",
  async () => {
    await deployOnDemand(platform, "coveted", "module.exports = { main: () => 1 };");
    await platform.call("coveted.default");
    const selector = "-l serving.knative.dev/service=coveted";
    const image = await platform.k(
      `get pods ${selector} -o jsonpath={.items[0].spec.containers[0].image}`,
    );
    await untilZero(platform, "coveted");
    const waiting = async () => (await figure(platform, "spry_warm_processes"))!;
    await untilTrue("a runtime that waits", async () => (await waiting()) > 0, waitMs);
    const before = await waiting();
    await platform.k("create namespace thief");
    const labels = { "serving.knative.dev/revision": "any" };
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "thief", namespace: "thief", labels },
      spec: { containers: [{ name: "function", image, imagePullPolicy: "IfNotPresent" }] },
    };
    await platform.k("apply -f -", JSON.stringify(pod));
    await untilTrue(
      "the image is refused",
      async () => {
        const status = await platform.k(
          "get pod thief -n thief -o jsonpath={.status.containerStatuses}",
        );
        return /ErrImagePull|ImagePullBackOff/.test(status);
      },
      waitMs,
    );
    expect(await waiting()).toBe(before);
    await platform.k("delete namespace thief --wait=false");
  },
  limitMs,
);
