import { apiVersionOf, type CustomResourceDefinition } from "@spry/kube";
import { serverlesses } from "./types.ts";

const text = { type: "string" };
const endpoint = { type: "object", properties: { endpoint: text } };
const scaleConfig = {
  type: "object",
  required: ["minReplicas", "maxReplicas"],
  properties: {
    minReplicas: { type: "integer", format: "int32", minimum: 0 },
    maxReplicas: { type: "integer", format: "int32", minimum: 1 },
  },
};
const texts = [
  "targetCPUUtilizationPercentage",
  "functionRequeueDuration",
  "functionBuildExecutorArgs",
  "functionBuildMaxSimultaneousJobs",
  "healthzLivenessTimeout",
  "defaultBuildJobPreset",
  "defaultRuntimePodPreset",
  "logLevel",
  "logFormat",
  "functionHistoryLimit",
];
const sameTexts = Object.fromEntries(texts.map((name) => [name, text]));

/** The CustomResourceDefinition of the Serverless object (docs/compatibility.md#serverless-object). */
export function serverlessCrd(): CustomResourceDefinition {
  const { group, version, kind, plural } = serverlesses;
  const column = (name: string, condition: string) => ({
    name,
    type: "string",
    jsonPath: `.status.conditions[?(@.type=="${condition}")].status`,
  });
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, listKind: `${kind}List`, plural, singular: "serverless" },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: [
            column("Configured", "Configured"),
            column("Installed", "Installed"),
            { name: "generation", type: "integer", jsonPath: ".metadata.generation" },
            { name: "age", type: "date", jsonPath: ".metadata.creationTimestamp" },
            { name: "state", type: "string", jsonPath: ".status.state" },
          ],
          schema: { openAPIV3Schema: schema() },
        },
      ],
    },
  };
}

function schema() {
  return {
    description: `${apiVersionOf(serverlesses)} ${serverlesses.kind}: the configuration of a cluster's Functions.`,
    type: "object" as const,
    properties: {
      apiVersion: text,
      kind: text,
      metadata: { type: "object" },
      spec: {
        type: "object",
        properties: {
          dockerRegistry: {
            type: "object",
            properties: { enableInternal: { type: "boolean" }, secretName: text },
          },
          tracing: endpoint,
          eventing: {
            type: "object",
            properties: {
              endpoint: text,
              nats: {
                type: "object",
                required: ["servers"],
                description:
                  "NATS servers of your own, with JetStream, that keep events and calls in place of those of the installation. In a cluster only.",
                properties: {
                  servers: {
                    type: "array",
                    minItems: 1,
                    maxItems: 10,
                    items: { type: "string", maxLength: 300 },
                    description: "nats://host:port or tls://host:port, of one cluster.",
                  },
                  secretName: {
                    type: "string",
                    maxLength: 253,
                    description:
                      "A Secret in the namespace of Spry with the key token, or username and password; the key ca.crt names the authority of the servers' certificates.",
                  },
                  allowPlaintext: {
                    type: "boolean",
                    description:
                      "Whether the credentials may be sent to nats:// servers without TLS; false if left out, and then they are not used.",
                  },
                  replicas: {
                    type: "integer",
                    format: "int32",
                    enum: [1, 3, 5],
                    description: "On how many of the servers each message is; 1 if left out.",
                  },
                },
              },
            },
          },
          enableNetworkPolicies: { type: "boolean" },
          gitAllowedAddresses: {
            type: "array",
            maxItems: 100,
            items: { type: "string", maxLength: 253 },
            description:
              "Host names, IP addresses and networks (CIDR) of Git servers on loopback, link-local or the platform's own addresses that Functions may be fetched from.",
          },
          defaultScaleConfig: {
            ...scaleConfig,
            description:
              "The scaleConfig of new Functions that have none and leave replicas at 1; with minReplicas 0 it is served on demand.",
          },
          ...sameTexts,
        },
      },
      status: {
        type: "object",
        properties: {
          state: { type: "string", enum: ["Ready", "Processing", "Warning", "Error", "Deleting"] },
          served: { type: "string", enum: ["True", "False"] },
          dockerRegistry: text,
          tracingEndpoint: text,
          eventingEndpoint: text,
          networkPoliciesEnabled: text,
          defaultScaleConfig: scaleConfig,
          ...sameTexts,
          conditions: {
            type: "array",
            items: {
              type: "object",
              required: ["type", "status", "reason", "message", "lastTransitionTime"],
              properties: {
                type: text,
                status: { type: "string", enum: ["True", "False", "Unknown"] },
                reason: text,
                message: text,
                lastTransitionTime: { type: "string", format: "date-time" },
                observedGeneration: { type: "integer", format: "int64" },
              },
            },
          },
        },
      },
    },
  };
}
