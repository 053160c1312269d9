/** Functions from one way of serving to the other and back, under requests; and called by others while there is none. */
import { expect, test } from "vitest";
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
const podsOf = () =>
  platform.k(
    "get pods -l serving.knative.dev/service=zero --field-selector=status.phase!=Succeeded -o name",
  );

test("another Function calls one at zero by the name of its Service", async () => {
  const caller = `
    module.exports = { main: async (event) => {
      const answers = [];
      for (const host of ["zero", "zero.default", "zero.default.svc.cluster.local"])
        answers.push(await (await fetch("http://" + host + "/")).text());
      return answers;
    } };`;
  await platform.k(
    "apply -f -",
    functionManifest("zero", answering("here"), { scaleConfig, annotations: soon }),
  );
  await platform.k("wait --for=condition=Running function/zero --timeout=60s");
  await platform.k("apply -f -", functionManifest("caller", caller));
  await platform.k("wait --for=condition=Running function/caller --timeout=60s");
  await untilTrue("zero at zero", async () => (await podsOf()) === "", 60_000);
  const answer = await platform.call("caller.default");
  expect(answer).toMatchObject({ status: 200, body: '["here","here","here"]' });
});

test("a change between the two ways of serving loses no request, in both directions", async () => {
  const manifest = (spec: object) => functionManifest("switch", answering("on"), { ...spec });
  await platform.k("apply -f -", manifest({}));
  await platform.k("wait --for=condition=Running function/switch --timeout=60s");
  const ip = await platform.k("get service switch -o jsonpath={.spec.clusterIP}");
  const requests = requestsTo(platform, "switch.default");

  await platform.k("apply -f -", manifest({ scaleConfig, annotations: soon }));
  await untilTrue(
    "no Deployment of the Function's own",
    async () => !(await platform.k("get deployments -o name")).includes("deployment.apps/switch\n"),
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
