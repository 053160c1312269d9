import { domainMappings, knative } from "@spry/function";
import { type CustomResourceDefinition, type Resource } from "@spry/kube";
import {
  configurationSchema,
  domainMappingSchema,
  revisionSchema,
  routeSchema,
  serviceSchema,
} from "./schemas.ts";

const condition = (field: string) => `.status.conditions[?(@.type=='Ready')].${field}`;
const column = (name: string, jsonPath: string, type = "string") => ({ name, type, jsonPath });
const label = (name: string) => `.metadata.labels['serving\\.knative\\.dev/${name}']`;
const url = column("URL", ".status.url");
const latest = [
  column("LatestCreated", ".status.latestCreatedRevisionName"),
  column("LatestReady", ".status.latestReadyRevisionName"),
];
const readiness = [column("Ready", condition("status")), column("Reason", condition("reason"))];

/** By these labels the definitions are known as ours; Knative's own have others. */
export const definitionLabels = {
  "app.kubernetes.io/part-of": "spry",
  "app.kubernetes.io/managed-by": "spry",
} as const;

/** The CustomResourceDefinitions of `serving.knative.dev/v1`, with Knative's columns, short names and categories. */
export function servingCrds(): CustomResourceDefinition[] {
  return [
    definition(knative.services, ["kservice", "ksvc"], serviceSchema(), [
      url,
      ...latest,
      ...readiness,
    ]),
    definition(knative.configurations, ["config", "cfg"], configurationSchema(), [
      ...latest,
      ...readiness,
    ]),
    definition(knative.revisions, ["rev"], revisionSchema(), [
      column("Config Name", label("configuration")),
      column("Generation", label("configurationGeneration")),
      ...readiness,
      column("Actual Replicas", ".status.actualReplicas", "integer"),
      column("Desired Replicas", ".status.desiredReplicas", "integer"),
    ]),
    definition(knative.routes, ["rt"], routeSchema(), [url, ...readiness]),
    definition(domainMappings, ["dm"], domainMappingSchema(), [url, ...readiness]),
  ];
}

function definition(
  { group, version, kind, plural }: Resource,
  shortNames: string[],
  openAPIV3Schema: object,
  additionalPrinterColumns: ReturnType<typeof column>[],
): CustomResourceDefinition {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}`, labels: { ...definitionLabels } },
    spec: {
      group,
      scope: "Namespaced",
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames,
        categories: ["all", "knative", "serving"],
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns,
          schema: { openAPIV3Schema },
        },
      ],
    },
  };
}
