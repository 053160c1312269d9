/** Functions that are served on demand: from zero, to zero, and between the two ways of serving. */
import { describe, expect, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";
import { type Answer } from "../support/calls.ts";
import { functionManifest, pause } from "../support/platform.ts";
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

/** Requests one after another, some at a time, until it is stopped. */
function load(host: string, connections = 4) {
  const failures: (Answer | string)[] = [];
  let answered = 0;
  const over = new AbortController();
  const clients = Array.from({ length: connections }, async () => {
    while (!over.signal.aborted) {
      try {
        const answer = await platform.call(host);
        if (answer.status === 200) answered++;
        else failures.push(answer);
      } catch (error) {
        failures.push(String(error));
      }
      await pause(25);
    }
  });
  return {
    async stop() {
      over.abort();
      await Promise.all(clients);
      return { answered, failures };
    },
  };
}

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

  test("another Function calls it at zero by the name of its Service", async () => {
    const caller = `
      module.exports = { main: async (event) => {
        const answers = [];
        for (const host of ["zero", "zero.default", "zero.default.svc.cluster.local"])
          answers.push(await (await fetch("http://" + host + "/")).text());
        return answers;
      } };`;
    await platform.k("apply -f -", functionManifest("caller", caller));
    await platform.k("wait --for=condition=Running function/caller --timeout=60s");
    await atZero("zero");
    const answer = await platform.call("caller.default");
    expect(answer).toMatchObject({ status: 200, body: '["here","here","here"]' });
  });

  test("an edit is a new revision, and no request fails on the way", async () => {
    const requests = load("zero.default");
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

describe("a change between the two ways of serving", () => {
  test("loses no request, in both directions", async () => {
    const manifest = (spec: object) => functionManifest("switch", answering("on"), { ...spec });
    await platform.k("apply -f -", manifest({}));
    await platform.k("wait --for=condition=Running function/switch --timeout=60s");
    const ip = await platform.k("get service switch -o jsonpath={.spec.clusterIP}");
    const requests = load("switch.default");

    await platform.k("apply -f -", manifest({ scaleConfig, annotations: soon }));
    await untilTrue(
      "no Deployment of the Function's own",
      async () =>
        !(await platform.k("get deployments -o name")).includes("deployment.apps/switch\n"),
      60_000,
    );
    await platform.k("wait --for=condition=Running function/switch --timeout=60s");
    await platform.k("apply -f -", manifest({ scaleConfig: { minReplicas: 1, maxReplicas: 2 } }));
    await untilTrue(
      "no Knative Service",
      async () => !(await platform.k("get ksvc -o name")).includes("/switch"),
      60_000,
    );
    const { answered, failures } = await requests.stop();
    expect(failures).toEqual([]);
    expect(answered).toBeGreaterThan(100);
    expect(await platform.k("get service switch -o jsonpath={.spec.clusterIP}")).toBe(ip);
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
