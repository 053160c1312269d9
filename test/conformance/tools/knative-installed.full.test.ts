/** A platform on which the user installs Knative Serving from its own release: Spry leaves all Knative objects to it. */
import { readdirSync } from "node:fs";
import path from "node:path";
import { knativeLabels, type KService } from "@spry/function";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { knativeDefinitions } from "../../../tools/foreign-tools/knative.ts";
import { functionManifest, Platform } from "../../support/platform.ts";
import { untilTrue } from "../../support/until-true.ts";

const directory = knativeDefinitions();
const leftMessage =
  "Knative Serving is installed by another party: Knative Services are left to it";
const patience = { timeout: 30_000, interval: 100 };

describe.skipIf(!directory)(
  "Knative Serving of another party (needs: npm run foreign-tools)",
  () => {
    const platform = new Platform();
    beforeAll(async () => {
      await platform.start();
      const serverless = {
        apiVersion: "operator.kyma-project.io/v1alpha1",
        kind: "Serverless",
        metadata: { name: "default", namespace: "kyma-system" },
      };
      await platform.k("apply -f -", JSON.stringify(serverless));
    }, 60_000);
    afterAll(() => platform.remove());

    const get = (what: string, output: string) => platform.k(`get ${what} -o ${output}`);
    const configured = () =>
      get(
        "serverless default -n kyma-system",
        'jsonpath={.status.conditions[?(@.type=="Configured")].message}',
      );
    const running = (name: string) =>
      get(`function ${name}`, 'jsonpath={.status.conditions[?(@.type=="Running")].status}');
    const webhooks = (kind: string, name: string) =>
      get(`${kind}webhookconfigurations ${name}`, "jsonpath={.webhooks[*].name}");
    const scaleConfig = { minReplicas: 0, maxReplicas: 2 };
    const lazy = (name: string) =>
      functionManifest(name, `module.exports = { main: () => "here" };`, { scaleConfig });

    test("replaces ours, and the Serverless object says so", async () => {
      expect(await configured()).not.toContain(leftMessage);
      const files = readdirSync(directory ?? "").filter((name) => name.endsWith(".yaml"));
      for (const name of files)
        await platform.k(
          `apply --server-side --force-conflicts -f ${path.join(directory ?? "", name)}`,
        );
      await expect.poll(configured, patience).toContain(leftMessage);
    });

    test("has its own webhooks: ours are no longer called", async () => {
      await expect.poll(() => webhooks("mutating", "webhook.serving.spry.io"), patience).toBe("");
      await expect
        .poll(() => webhooks("validating", "validation.webhook.serving.spry.io"), patience)
        .toBe("");
    });

    test.each(["at once", "after a restart"])(
      "gets the Knative Services of Functions, %s, and serves them",
      async (when) => {
        if (when !== "at once") await platform.crash();
        const name = when === "at once" ? "lazy" : "later";
        await platform.k("apply -f -", lazy(name));
        await untilTrue(
          "a Knative Service",
          async () => (await platform.kubectl(["get", "ksvc", name])).code === 0,
          60_000,
        );
        const kservice = JSON.parse(await get(`ksvc ${name}`, "json")) as KService;
        expect(kservice.metadata.ownerReferences?.[0]).toMatchObject({ kind: "Function", name });
        expect(kservice.spec.template.metadata?.name).toBe(`${name}-00001`);
        expect(kservice.metadata.annotations ?? {}).not.toHaveProperty(
          "serving.knative.dev/creator",
        );
        expect(await get("configurations.serving.knative.dev,deployments", "name")).toBe("");
        expect(await running(name)).toBe("Unknown");

        // As the controllers of that installation do it.
        const revision = `${name}-00001`;
        const condition = (type: string) => ({ type, status: "True" });
        const status = {
          observedGeneration: kservice.metadata.generation,
          latestCreatedRevisionName: revision,
          latestReadyRevisionName: revision,
          conditions: ["Ready", "ConfigurationsReady", "RoutesReady"].map(condition),
        };
        await platform.k(
          `patch ksvc ${name} --subresource=status --type=merge -p ${JSON.stringify({ status })}`,
        );
        await expect.poll(() => running(name), patience).toBe("True");
        expect(await get("pods", "name")).not.toContain(knativeLabels.revision);
        expect(await get(`ksvc ${name}`, "jsonpath={.status.conditions[*].status}")).toBe(
          "True True True",
        );
      },
      120_000,
    );

    test("loses them with their Functions", async () => {
      await platform.k("delete functions --all --timeout=60s");
      await expect.poll(() => get("ksvc", "name"), patience).toBe("");
      expect(await get("crd services.serving.knative.dev", "name")).toContain("services.serving");
    });
  },
);
