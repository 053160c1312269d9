import {
  validateClientConfig,
  validateReviewVersions,
} from "../../admission/webhooks/validation.ts";
import { type FieldErrors } from "../../field-errors.ts";
import { type ConversionWebhook } from "../../resources/webhook-client.ts";

const strategies = ["None", "Webhook"];

/** `spec.conversion` of a CustomResourceDefinition, fields named as the original's internal version has them. */
export function validateConversion(
  conversion: { strategy: string; webhook?: Partial<ConversionWebhook> } | undefined,
  path: string,
  errors: FieldErrors,
): void {
  if (!conversion) return;
  const { strategy, webhook } = conversion;
  if (!strategy) errors.required(`${path}.strategy`);
  else if (!strategies.includes(strategy))
    errors.unsupported(`${path}.strategy`, strategy, strategies);
  const config = `${path}.webhookClientConfig`;
  const versions = `${path}.conversionReviewVersions`;
  if (strategy === "Webhook") {
    if (webhook?.clientConfig) validateClientConfig(webhook.clientConfig, config, errors);
    else errors.required(config, "required when strategy is set to Webhook");
    const reviewVersions = webhook?.conversionReviewVersions ?? [];
    if (reviewVersions.length === 0) errors.required(versions);
    else validateReviewVersions(reviewVersions, versions, errors);
    return;
  }
  const told = "should not be set when strategy is not set to Webhook";
  if (webhook?.clientConfig) errors.forbidden(config, told);
  if (webhook?.conversionReviewVersions?.length) errors.forbidden(versions, told);
}
