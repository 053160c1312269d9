import { type Webhook } from "../admission/webhook-configuration.ts";
import { type Strategy } from "../resources/resource-type.ts";

export const webhookConfigurationStrategy: Strategy = {
  generation: true,
  defaults(object) {
    const isMutating = object.kind === "MutatingWebhookConfiguration";
    for (const webhook of (object.webhooks ?? []) as (Webhook & {
      reinvocationPolicy?: string;
    })[]) {
      webhook.failurePolicy ??= "Fail";
      webhook.matchPolicy ??= "Equivalent";
      webhook.namespaceSelector ??= {};
      webhook.objectSelector ??= {};
      webhook.timeoutSeconds ??= 10;
      if (isMutating) webhook.reinvocationPolicy ??= "Never";
      if (webhook.clientConfig?.service) webhook.clientConfig.service.port ??= 443;
      for (const rule of webhook.rules ?? []) rule.scope ??= "*";
    }
  },
  validate(object, errors) {
    const names = new Set<string>();
    for (const [index, webhook] of ((object.webhooks ?? []) as Webhook[]).entries()) {
      const path = `webhooks[${index}]`;
      if (!webhook.name) errors.required(`${path}.name`);
      else if (names.has(webhook.name)) errors.duplicate(`${path}.name`, webhook.name);
      names.add(webhook.name);
      const { url, service } = webhook.clientConfig ?? {};
      if ((url === undefined) === (service === undefined)) {
        errors.required(`${path}.clientConfig`, "exactly one of url or service is required");
      }
      if (url !== undefined && (!URL.canParse(url) || !url.startsWith("https://"))) {
        errors.invalid(
          `${path}.clientConfig.url`,
          url,
          "'https' is the only allowed URL scheme; desired format: https://host[/path]",
        );
      }
      if (!webhook.sideEffects)
        errors.required(`${path}.sideEffects`, "must specify one of None, NoneOnDryRun");
      if (!webhook.admissionReviewVersions?.includes("v1")) {
        errors.invalid(
          `${path}.admissionReviewVersions`,
          webhook.admissionReviewVersions ?? [],
          "must include at least one of v1",
        );
      }
      const timeout = webhook.timeoutSeconds ?? 10;
      if (timeout < 1 || timeout > 30) {
        errors.invalid(
          `${path}.timeoutSeconds`,
          timeout,
          "the timeout value must be between 1 and 30 seconds",
        );
      }
    }
  },
};
