import { apiRules, apiRulesV2alpha1 } from "@spry/function";
import { type CustomResourceDefinition } from "@spry/kube";
import { apiRulesV1beta1 } from "../conversion/v1beta1.ts";
import { apiRuleSchema, apiRuleV1beta1Schema } from "./api-rule-schemas.ts";
import { ourLabels } from "./ownership.ts";
import { type Schema } from "./schema.ts";

type Version = CustomResourceDefinition["spec"]["versions"][number];

/** The CustomResourceDefinition of APIRules, with the webhook that converts between its versions. */
export function apiRuleCrd(webhook: object): CustomResourceDefinition {
  const { group, kind, plural } = apiRules;
  const version = (name: string, columns: [string, string][], schema: Schema): Version => ({
    name,
    served: true,
    storage: name === apiRules.version,
    subresources: { status: {} },
    additionalPrinterColumns: columns.map(([column, jsonPath]) => ({
      name: column,
      type: "string",
      jsonPath,
    })),
    schema: { openAPIV3Schema: schema },
  });
  const columns: [string, string][] = [
    ["Status", ".status.state"],
    ["Hosts", ".spec.hosts"],
  ];
  const columnsV1beta1: [string, string][] = [
    ["Status", ".status.APIRuleStatus.code"],
    ["Host", ".spec.host"],
  ];
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}`, labels: ourLabels },
    spec: {
      group,
      scope: "Namespaced",
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: "apirule",
        categories: ["kyma-api-gateway"],
      },
      versions: [
        version(apiRules.version, columns, apiRuleSchema()),
        version(apiRulesV2alpha1.version, columns, apiRuleSchema()),
        {
          ...version(apiRulesV1beta1.version, columnsV1beta1, apiRuleV1beta1Schema()),
          deprecated: true,
          deprecationWarning: `${group}/v1beta1 APIRule is deprecated; use ${apiRules.version}`,
        },
      ],
      conversion: {
        strategy: "Webhook",
        webhook: { clientConfig: webhook, conversionReviewVersions: ["v1"] },
      },
    },
  };
}
