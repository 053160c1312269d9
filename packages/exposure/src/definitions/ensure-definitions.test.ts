/** Where another installation has defined APIRules or Gateways, both are left to it. */
import { type ApiRule, apiRules, istioGateways } from "@spry/function";
import { type CustomResourceDefinition, type KubeClient, resources } from "@spry/kube";
import { expect, test } from "vitest";
import { TestPlatform } from "../testing/platform.ts";
import { validatingConfigurationName } from "../webhook-location.ts";
import { apiRuleCrd } from "./api-rule-crd.ts";
import { definitionOwner } from "./ensure-definitions.ts";
import { gatewayCrd } from "./gateway-crd.ts";

const foreign = ({ metadata, ...rest }: CustomResourceDefinition): CustomResourceDefinition => ({
  ...rest,
  metadata: { name: metadata.name ?? "" },
});

const unconverted = (): CustomResourceDefinition => {
  const crd = foreign(apiRuleCrd({}));
  return { ...crd, spec: { ...crd.spec, conversion: { strategy: "None" } } };
};

const define = (crd: CustomResourceDefinition) => async (client: KubeClient) => {
  await client.create(resources.customResourceDefinitions, crd);
};

const rule: ApiRule = {
  apiVersion: "gateway.kyma-project.io/v2",
  kind: "APIRule",
  metadata: { name: "dice", namespace: "shop" },
  spec: {
    hosts: ["dice"],
    gateway: "kyma-system/kyma-gateway",
    // Neither a Service, which our webhook would refuse.
    rules: [{ path: "/*", methods: ["GET"], noAuth: true }],
  },
};

const webhooks = async (client: KubeClient) => {
  const target = { name: validatingConfigurationName };
  const found = await client.get(resources.validatingWebhookConfigurations, target);
  return found.webhooks?.length ?? 0;
};

test("APIRules of another installation are neither checked, nor given a status, nor redefined", async () => {
  await using platform = await TestPlatform.start({ before: define(unconverted()) });
  const { client } = platform;
  const name = `${apiRules.plural}.${apiRules.group}`;
  const { metadata } = await client.get(resources.customResourceDefinitions, { name });
  expect(metadata.generation).toBe(1);
  expect(await webhooks(client)).toBe(0);
  await expect.poll(() => platform.owners).toEqual(["other"]);
  expect(await definitionOwner(client, istioGateways)).toBe("ours");
  await platform.apply(rule);
  await platform.gateway("kyma-system/kyma-gateway", "*.example.com");
  // As long as a status takes elsewhere, several times.
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await platform.statusOf("shop", "dice")).toBeUndefined();
});

test("Gateways of another installation are used as they are", async () => {
  await using platform = await TestPlatform.start({ before: define(foreign(gatewayCrd())) });
  const { client } = platform;
  const name = `${istioGateways.plural}.${istioGateways.group}`;
  const { metadata } = await client.get(resources.customResourceDefinitions, { name });
  expect(metadata.generation).toBe(1);
  expect(await webhooks(client)).toBe(1);
  await expect.poll(() => platform.owners).toEqual(["ours"]);
  await expect(platform.apply(rule)).rejects.toThrow(/spec.rules\[0\].service/);
  await platform.service("shop", "dice", 80);
  await platform.gateway("kyma-system/kyma-gateway", "*.example.com");
  await platform.apply({
    ...rule,
    spec: { ...rule.spec, service: { name: "dice", port: 80 } },
  } as ApiRule);
  await expect.poll(() => platform.statusOf("shop", "dice")).toBe("Ready: Reconciled successfully");
});
