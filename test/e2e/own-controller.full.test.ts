/** `--no-controller`: the definitions, webhooks and the controller of Functions are the user's own. */
import { afterAll, expect, test } from "vitest";
import { functionCrd } from "@spry/function";
import { functionManifest, Platform } from "../support/platform.ts";

const started: Platform[] = [];
const startIn = async (dataDir: string | undefined, args: string[]) => {
  const platform = new Platform({ ...(dataDir && { dataDir }), args });
  started.push(platform);
  await platform.start();
  return platform;
};
afterAll(async () => {
  for (const platform of started.reverse()) await platform.remove();
});

const hello = functionManifest("hello", "module.exports = { main: () => 'hi' }");

test("without its controller, the platform stores Functions as they are, and takes them over later", async () => {
  const bare = await startIn(undefined, ["--no-controller"]);
  expect(bare.output).toContain("left to another controller");
  await expect(bare.k("get functions")).rejects.toThrow("doesn't have a resource type");

  const { spec, ...definition } = functionCrd();
  const versions = spec.versions.filter(({ name }) => name === "v1alpha2");
  await bare.k("apply -f -", JSON.stringify({ ...definition, spec: { ...spec, versions } }));
  await bare.k("wait --for=condition=Established crd/functions.serverless.kyma-project.io");
  await bare.k("apply -f -", hello);
  expect(await bare.k("get function hello -o jsonpath={.status}")).toBe("");
  expect(await bare.k("get validatingwebhookconfigurations -o name")).not.toContain("serverless");
  await bare.stop();

  const whole = await startIn(bare.dataDir, ["--no-example"]);
  await whole.k("wait --for=condition=Running function/hello --timeout=120s");
  await whole.stop();

  const again = await startIn(bare.dataDir, ["--no-controller"]);
  const webhooks = await again.k("get mutatingwebhookconfigurations -o name");
  expect(webhooks).not.toContain("serverless");
});
