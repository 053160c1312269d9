import { validateWebhookConfiguration } from "../../admission/webhooks/validation.ts";
import { type Webhook } from "../../admission/webhooks/webhook.ts";
import { type Strategy } from "../../resources/resource-type.ts";

/** `pkg/apis/admissionregistration/v1/defaults.go`, `pkg/registry/admissionregistration`. */
export const webhookConfigurationStrategy: Strategy = {
  generation: true,
  defaults(object) {
    const isMutating = object.kind === "MutatingWebhookConfiguration";
    for (const webhook of (object.webhooks ?? []) as Webhook[]) {
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
  validate: validateWebhookConfiguration,
};
