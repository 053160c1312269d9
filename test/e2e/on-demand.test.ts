/**
 * Functions that are served on demand: from zero, to zero, edited and deleted. From one way of serving to the other:
 * ways-of-serving.full.test.ts, and step by step in packages/controller/src/function/function-on-demand.test.ts. Called from
 * inside at zero: knative.test.ts.
 */
import { describe, expect, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";
import { functionManifest } from "../support/platform.ts";
import { requestsTo } from "../support/requests.ts";
import { impatientServing } from "../support/serving-settings.ts";
import { untilTrue } from "../support/until-true.ts";

const platform = enginePlatform(async (started) => {
  await started.k("apply -f -", impatientServing);
});

const scaleConfig = { minReplicas: 0, maxReplicas: 3 };
/** The shortest window that Knative permits. */
const soon = { "autoscaling.knative.dev/window": "6s" };
const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;

const podsOf = async (name: string) =>
  (
    await platform.k(
      `get pods -l serving.knative.dev/service=${name} --field-selector=status.phase!=Succeeded -o name`,
    )
  )
    .split("\n")
    .filter(Boolean);
const atZero = (name: string) =>
  untilTrue(`${name} at zero`, async () => (await podsOf(name)).length === 0, 60_000);

describe("a Function with a minimum of zero", () => {
  test("runs, goes to zero without requests, and is there again for the next request", async () => {
    await platform.k(
      "apply -f -",
      functionManifest("zero", answering("here"), { scaleConfig, annotations: soon }),
    );
    await platform.k("wait --for=condition=Running function/zero --timeout=60s");
    expect(await platform.call("zero.default")).toMatchObject({ status: 200, body: "here" });
    await atZero("zero");
    expect(await platform.k("get function zero -o jsonpath={.status.replicas}")).toBe("0");

    const cold = await platform.call("zero.default");
    expect(cold).toMatchObject({ status: 200, body: "here" });
    expect(cold.headers["server-timing"]).toMatch(/coldstart;dur=\d/);
    const warm = await platform.call("zero.default");
    expect(warm.headers["server-timing"] ?? "").not.toContain("coldstart");
  });

  test("an edit is a new revision, and no request fails on the way", async () => {
    const requests = requestsTo(platform, "zero.default");
    await platform.k(
      "apply -f -",
      functionManifest("zero", answering("edited"), { scaleConfig, annotations: soon }),
    );
    await platform.callUntil("zero.default", ({ body }) => body === "edited");
    const { answered, failures } = await requests.stop();
    expect(failures).toEqual([]);
    expect(answered).toBeGreaterThan(10);
    const revisions = await platform.k(
      "get revisions.serving.knative.dev -l serving.knative.dev/service=zero -o name",
    );
    expect(revisions).toContain("zero-00002");
  });

  test("code that does not load leaves the last version serving, and says so", async () => {
    await platform.k(
      "apply -f -",
      functionManifest("zero", "module.exports = { main: (", { scaleConfig, annotations: soon }),
    );
    await platform.k("wait --for=condition=Running=false function/zero --timeout=60s");
    const message = await platform.k(
      `get function zero -o jsonpath={.status.conditions[?(@.type=="Running")].message}`,
    );
    expect(message).toContain("SyntaxError");
    expect(await platform.call("zero.default")).toMatchObject({ status: 200, body: "edited" });
  });

  test("is deleted with all that belongs to it", async () => {
    await platform.k("delete function zero --timeout=60s");
    await untilTrue(
      "nothing left",
      async () =>
        (await platform
          .k(
            "get ksvc,configurations.serving.knative.dev,revisions.serving.knative.dev,routes.serving.knative.dev,deployments,services -o name",
          )
          .then((names) => names.split("\n").filter((name) => name.includes("/zero")).length)) ===
        0,
      60_000,
    );
  });
});

test("new Functions are served on demand where the operator says so, and others stay as they are", async () => {
  const serverless = (spec: object) =>
    platform.k(
      `patch serverless default -n kyma-system --type=merge -p ${JSON.stringify({ spec })}`,
    );
  await platform.k(
    "apply -f -",
    JSON.stringify({
      apiVersion: "operator.kyma-project.io/v1alpha1",
      kind: "Serverless",
      metadata: { name: "default", namespace: "kyma-system" },
    }),
  );
  const minimum = (name: string, dryRun = "") =>
    platform.k(
      `apply -f - -o jsonpath={.spec.scaleConfig.minReplicas} ${dryRun}`.trim(),
      functionManifest(name, answering(name)),
    );
  expect(await minimum("former")).toBe("");
  await serverless({ defaultScaleConfig: { minReplicas: 0, maxReplicas: 2 } });
  try {
    await expect
      .poll(() => minimum("later", "--dry-run=server"), { timeout: 30_000, interval: 100 })
      .toBe("0");
    expect(await minimum("later")).toBe("0");
    expect(await minimum("former")).toBe("");
    await platform.k("wait --for=condition=Running function/later function/former --timeout=60s");
    expect(await platform.k("get ksvc -o name")).toBe("service.serving.knative.dev/later\n");
    expect((await platform.call("later.default")).body).toBe("later");
  } finally {
    await serverless({ defaultScaleConfig: null });
  }
}, 150_000);
