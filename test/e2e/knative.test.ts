/** Knative Services on either engine: from zero and back, traffic, and callers inside, with the image of a Function. */
import { describe, expect, test } from "vitest";
import { rounds } from "@spry/test-kit";
import { enginePlatform } from "../support/engine.ts";
import { Load } from "../support/load.ts";
import { functionManifest, pause } from "../support/platform.ts";
import { impatientServing } from "../support/serving-settings.ts";

const platform = enginePlatform(async (started) => {
  await started.k("apply -f -", functionManifest("made", source));
  await started.k("wait --for=condition=Running function/made --timeout=60s");
  image = await started.k(
    "get deployment made -o jsonpath={.spec.template.spec.containers[0].image}",
  );
  await started.k("apply -f -", impatientServing);
});
const source = `module.exports = {
  main: async (event) => {
    const url = event.extensions.request.query.call;
    if (url) return (await fetch(url)).text();
    await new Promise((resolve) => setTimeout(resolve, 20));
    return process.env.ANSWER ?? "one";
  },
};`;
let image = "";

interface ServiceOptions {
  answer?: string;
  annotations?: Record<string, string>;
  spec?: object;
  traffic?: object[];
}

function kservice(name: string, options: ServiceOptions = {}): string {
  const { answer = "one", annotations, spec, traffic } = options;
  const env = [
    { name: "ANSWER", value: answer },
    { name: "FUNC_NAME", value: name },
    { name: "SERVICE_NAMESPACE", value: "default" },
  ];
  return JSON.stringify({
    apiVersion: "serving.knative.dev/v1",
    kind: "Service",
    metadata: { name, namespace: "default" },
    spec: {
      template: {
        metadata: { annotations: { "autoscaling.knative.dev/window": "6s", ...annotations } },
        // Whose Pods may pull the namespace's images.
        spec: { serviceAccountName: "serverless-function", containers: [{ image, env }], ...spec },
      },
      ...(traffic ? { traffic } : {}),
    },
  });
}

const ready = (name: string) => platform.k(`wait --for=condition=Ready ksvc/${name} --timeout=60s`);

const replicas = (revision: string) =>
  platform.k(`get deployment ${revision}-deployment -o jsonpath={.spec.replicas}`);

/** Asks again until that is the answer; rows that run at the same time cannot share `expect.poll`. */
async function until(ask: () => Promise<string>, answer: string): Promise<void> {
  const deadline = performance.now() + 60_000;
  for (let last = ""; (last = await ask()) !== answer; await pause(200)) {
    if (performance.now() > deadline) throw new Error(`expected ${answer}, still ${last}`);
  }
}

const atZero = (revision: string) => until(() => replicas(revision), "0");

// Each of them waits for windows to pass.
describe.concurrent("from zero and back", () => {
  test("a Service answers, ends its Pods, and answers again by the first request", async () => {
    await platform.k("apply -f -", kservice("life"));
    await ready("life");
    for (let round = 0; round < rounds({ quick: 1, full: 5 }); round++) {
      expect(await platform.call("life.default")).toMatchObject({ status: 200, body: "one" });
      await atZero("life-00001");
      // Until it has ended: the next request finds no Pod.
      await until(() => platform.k("get pods -l serving.knative.dev/service=life -o name"), "");
    }
    const [header, row] = (await platform.k("get ksvc life")).split("\n");
    expect(header?.split(/\s+/).slice(0, 6)).toEqual([
      "NAME",
      "URL",
      "LATESTCREATED",
      "LATESTREADY",
      "READY",
      "REASON",
    ]);
    expect(row?.split(/\s+/).slice(2, 5)).toEqual(["life-00001", "life-00001", "True"]);
  }, 120_000);

  test("of a burst at zero none is lost, and few Pods are started", async () => {
    await platform.k("apply -f -", kservice("burst"));
    await ready("burst");
    await atZero("burst-00001");
    const all = await Promise.all(
      Array.from({ length: 200 }, () => platform.call("burst.default")),
    );
    expect(all.filter(({ status }) => status !== 200)).toEqual([]);
    expect(Number(await replicas("burst-00001"))).toBeLessThanOrEqual(3);
  }, 90_000);

  test("a caller inside reaches it at zero by its short name", async () => {
    await platform.k("apply -f -", kservice("inside", { answer: "from inside" }));
    await ready("inside");
    await atZero("inside-00001");
    for (const url of ["http://inside", "http://inside.default.svc.cluster.local/"]) {
      const answer = await platform.call("made.default", { path: `/?call=${url}` });
      expect(answer).toMatchObject({ status: 200, body: "from inside" });
    }
  }, 90_000);
});

describe("traffic", () => {
  test("a change of the Service loses no request", async () => {
    const steady = { "autoscaling.knative.dev/min-scale": "1" };
    await platform.k("apply -f -", kservice("change", { annotations: steady }));
    await ready("change");
    const load = new Load(platform.gateway, "change.default.localhost");
    load.start(100);
    for (const answer of ["two", "three"]) {
      await pause(500);
      await platform.k("apply -f -", kservice("change", { answer, annotations: steady }));
      await platform.callUntil("change.default", ({ body }) => body === answer);
    }
    await pause(500);
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(load.answered).toBeGreaterThan(100);
  }, 90_000);

  test("is divided among Revisions, and a tag has a host of its own", async () => {
    await platform.k("apply -f -", kservice("split", { answer: "blue" }));
    await ready("split");
    const traffic = [
      { revisionName: "split-00001", percent: 50, tag: "blue" },
      { latestRevision: true, percent: 50 },
    ];
    await platform.k("apply -f -", kservice("split", { answer: "green", traffic }));
    await platform.callUntil("split.default", ({ body }) => body === "green");
    const seen = new Map<string, number>();
    for (let i = 0; i < 100; i++) {
      const { body } = await platform.call("split.default");
      seen.set(body, (seen.get(body) ?? 0) + 1);
    }
    expect(seen.get("blue")).toBeGreaterThan(25);
    expect(seen.get("green")).toBeGreaterThan(25);
    expect(await platform.call("blue-split.default")).toMatchObject({ body: "blue" });
  }, 90_000);
});

test("what cannot be served is refused in Knative's words", async () => {
  const { code, stderr } = await platform.kubectl(
    ["apply", "-f", "-"],
    kservice("wrong", { spec: { timeoutSeconds: 3606 }, traffic: [{ percent: 30 }] }),
  );
  expect(code).toBe(1);
  expect(stderr).toContain(
    'admission webhook "validation.webhook.serving.knative.dev" denied the request: validation failed: ' +
      "Traffic targets sum to 30, want 100: spec.traffic\n" +
      "expected 0 <= 3606 <= 3605: spec.template.spec.timeoutSeconds",
  );
});

test("a Function whose Knative Service is refused says why", async () => {
  // A Deployment's Pods may have it; a Knative template may not.
  const podSecurityContext = { supplementalGroups: [5] };
  const spec = { scaleConfig: { minReplicas: 0, maxReplicas: 2 }, podSecurityContext };
  await platform.k("apply -f -", functionManifest("grouped", source, spec));
  const running = '-o jsonpath={.status.conditions[?(@.type=="Running")].message}';
  await expect
    .poll(() => platform.k(`get function grouped ${running}`), { timeout: 60_000 })
    .toContain("supplementalGroups");
}, 90_000);

test("a missing image is reported, and what served before goes on", async () => {
  await platform.k("apply -f -", kservice("gone"));
  await ready("gone");
  const missing = image.replace(/@sha256:.*/, `@sha256:${"0".repeat(64)}`);
  await platform.k("apply -f -", kservice("gone").replace(image, missing));
  await platform.k("wait --for=condition=Ready=False ksvc/gone --timeout=60s");
  const reason = '-o jsonpath={.status.conditions[?(@.type=="Ready")].reason}';
  expect(await platform.k(`get revision gone-00002 ${reason}`)).toMatch(
    /^(?:ErrImagePull|ImagePullBackOff)$/,
  );
  expect(await platform.call("gone.default")).toMatchObject({ status: 200, body: "one" });
}, 90_000);
