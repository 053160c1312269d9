/** Conversions as an API server asks for them: the webhook over HTTP, on a real API server in memory. */
import { createApiServer } from "@spry/apiserver";
import {
  functionCrd,
  functions,
  functionsV1alpha1,
  gitRepositories,
  gitRepositoryCrd,
} from "@spry/function";
import { KubeClient, resources } from "@spry/kube";
import { expect, test } from "vitest";
import { settings } from "../testing/objects.ts";
import { createAdmission } from "./admission.ts";

test("a review converts every object, and a missing GitRepository is named", async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  try {
    const client = new KubeClient(api.transport(), { fieldManager: "test" });
    for (const each of [functionCrd(), gitRepositoryCrd()])
      await client.apply(resources.customResourceDefinitions, each);
    await client.apply(resources.namespaces, { metadata: { name: "shop" } });
    await client.create(gitRepositories, {
      metadata: { name: "repo", namespace: "shop" },
      spec: { url: "https://git.example/shop.git" },
    });
    const admission = createAdmission(settings, client);
    const convert = async (repository: string) => {
      const git = { type: "git", source: repository, baseDir: "/", reference: "main" };
      const object = {
        apiVersion: "serverless.kyma-project.io/v1alpha1",
        kind: functionsV1alpha1.kind,
        metadata: { name: "fn", namespace: "shop" },
        spec: git,
      };
      const desiredAPIVersion = `${functions.group}/${functions.version}`;
      const request = { uid: "1", desiredAPIVersion, objects: [object] };
      const answer = await admission.fetch(
        new Request("https://webhook/convert", {
          method: "POST",
          body: JSON.stringify({ request }),
        }),
      );
      return (await answer.json()) as { response: Record<string, unknown> };
    };
    const { response } = await convert("repo");
    expect(response).toMatchObject({
      uid: "1",
      result: { status: "Success" },
      convertedObjects: [
        { spec: { source: { gitRepository: { url: "https://git.example/shop.git" } } } },
      ],
    });
    expect((await convert("other")).response).toEqual({
      uid: "1",
      result: { status: "Failure", message: "GitRepository shop/other does not exist" },
    });
  } finally {
    await api.close();
  }
});

test.each(["{}", "no JSON", '{"request":{"uid":"1"}}'])("%s is no review", async (body) => {
  const client = new KubeClient(() => Promise.reject(new Error("no request is expected")));
  const admission = createAdmission(settings, client);
  const request = new Request("https://webhook/convert", { method: "POST", body });
  expect((await admission.fetch(request)).status).toBe(400);
});
