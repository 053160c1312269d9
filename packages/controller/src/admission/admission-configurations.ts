import { functions } from "@spry/function";
import {
  type MutatingWebhookConfiguration,
  type Resource,
  type ValidatingWebhookConfiguration,
} from "@spry/kube";
import { defaultingPath, registrySecretPath, validationPath } from "./admission.ts";
import { remoteRegistryLabel } from "./registry-secret.ts";
import { serverlessDeletionPath } from "./serverless-deletion.ts";
import { serverlesses } from "../serverless/types.ts";

/** Where an API server finds the webhooks, and how it knows them. */
export interface WebhookLocation {
  /** PEM, in base64. */
  caBundle: string;
  /** Without a path. */
  url?: string;
  service?: { name: string; namespace: string; port?: number };
}

/** The two objects that make an API server ask the webhooks about Functions, and Secrets that choose a registry. */
export function admissionConfigurations(
  location: WebhookLocation,
): [MutatingWebhookConfiguration, ValidatingWebhookConfiguration] {
  const apiVersion = "admissionregistration.k8s.io/v1";
  const defaulting = "defaulting.webhook.serverless.kyma-project.io";
  const validation = "validation.webhook.serverless.kyma-project.io";
  return [
    {
      apiVersion,
      kind: "MutatingWebhookConfiguration",
      metadata: { name: defaulting },
      webhooks: [
        { name: defaulting, ...functionWebhook(location, defaultingPath) },
        {
          name: "mutating.secret.webhook.serverless.kyma-project.io",
          ...webhook(location, registrySecretPath),
          // Other Secrets are never sent to the webhook.
          objectSelector: { matchLabels: remoteRegistryLabel },
          rules: [ruleFor({ group: "", version: "v1", plural: "secrets" })],
        },
      ],
    },
    {
      apiVersion,
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: validation },
      webhooks: [
        { name: validation, ...functionWebhook(location, validationPath) },
        {
          name: "deletion.webhook.serverless.kyma-project.io",
          ...webhook(location, serverlessDeletionPath),
          // It only warns: nothing is held up by its absence.
          failurePolicy: "Ignore" as const,
          timeoutSeconds: 3,
          rules: [{ ...ruleFor(serverlesses), operations: ["DELETE" as const] }],
        },
      ],
    },
  ];
}

function webhook(location: WebhookLocation, path: string) {
  return {
    admissionReviewVersions: ["v1"],
    clientConfig: webhookClientConfig(location, path),
    failurePolicy: "Fail" as const,
    // An older version is asked about as what it is kept as.
    matchPolicy: "Equivalent" as const,
    sideEffects: "None" as const,
    timeoutSeconds: 10,
    namespaceSelector: {
      matchExpressions: [
        {
          key: "gardener.cloud/purpose",
          operator: "NotIn" as const,
          values: ["kube-system"],
        },
      ],
    },
  };
}

/** Not `functions/status`: the controller's status writes need no check. */
function functionWebhook(location: WebhookLocation, path: string) {
  return { ...webhook(location, path), rules: [ruleFor(functions)] };
}

function ruleFor({ group, version, plural }: Pick<Resource, "group" | "version" | "plural">) {
  return {
    apiGroups: [group],
    apiVersions: [version],
    operations: ["CREATE" as const, "UPDATE" as const],
    resources: [plural],
    scope: "Namespaced" as const,
  };
}

/** Where one webhook is. */
export function webhookClientConfig({ caBundle, url, service }: WebhookLocation, path: string) {
  if (service) return { caBundle, service: { port: 443, ...service, path } };
  if (url === undefined)
    throw new Error("locating the webhooks: neither a URL nor a Service was specified");
  return { caBundle, url: new URL(path, url).href };
}
