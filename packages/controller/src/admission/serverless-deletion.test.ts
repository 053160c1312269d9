import { createApiServer } from "@spry/apiserver";
import { functionCrd, functions } from "@spry/function";
import { KubeClient, resources } from "@spry/kube";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type AdmissionRequest } from "@spry/kube";
import { warnOfFunctions } from "./serverless-deletion.ts";

let api: Awaited<ReturnType<typeof createApiServer>>;
let client: KubeClient;
beforeAll(async () => {
  api = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(api.transport(), { fieldManager: "test" });
  await client.apply(resources.customResourceDefinitions, functionCrd());
});
afterAll(() => api.close());

const deletion = (served: string): AdmissionRequest => ({
  uid: "u",
  operation: "DELETE",
  kind: { group: "operator.kyma-project.io", version: "v1alpha1", kind: "Serverless" },
  oldObject: { metadata: { name: "default" }, status: { served } },
});

test("the deletion of the served object warns of the Functions that it waits for", async () => {
  expect(await warnOfFunctions(deletion("True"), client)).toEqual({ allowed: true });
  for (let index = 0; index < 6; index++) {
    const metadata = { namespace: "default", name: `fn-${index}` };
    const spec = { runtime: "nodejs24", source: { inline: { source: "x" } } };
    await client.create(functions, { metadata, spec });
  }
  const { allowed, warnings } = await warnOfFunctions(deletion("True"), client);
  expect(allowed).toBe(true);
  expect(warnings?.join()).toContain("default/fn-0, default/fn-1");
  expect(warnings?.join()).toContain("default/fn-4 and 1 more");
  expect(await warnOfFunctions(deletion("False"), client)).toEqual({ allowed: true });
});
