import { type LabelSelector } from "@spry/kube";
import { type ClientConfig } from "../../resources/webhook-client.ts";
import { type Store } from "../../store/store.ts";
import { type MatchCondition } from "../expressions/match-conditions.ts";
import { type Rule } from "../matching.ts";

/** One webhook of a Mutating- or ValidatingWebhookConfiguration, with the defaults in. */
export interface Webhook {
  name: string;
  clientConfig: ClientConfig;
  rules?: Rule[];
  failurePolicy?: "Fail" | "Ignore";
  matchPolicy?: "Exact" | "Equivalent";
  timeoutSeconds?: number;
  sideEffects?: string | null;
  reinvocationPolicy?: "Never" | "IfNeeded";
  namespaceSelector?: LabelSelector;
  objectSelector?: LabelSelector;
  matchConditions?: MatchCondition[];
  admissionReviewVersions?: string[];
}

export type WebhookPhase = "mutating" | "validating";

/** A webhook with a name that no other has. */
export interface NamedWebhook {
  key: string;
  webhook: Webhook;
}

/** The webhooks of a phase, configurations in the order of their names. */
export function webhooksOf(store: Store, phase: WebhookPhase): NamedWebhook[] {
  const collection = `admissionregistration.k8s.io/${phase}webhookconfigurations`;
  return store.list(collection).flatMap(({ object, name }) =>
    ((object.webhooks ?? []) as Webhook[]).map((webhook) => ({
      key: `${name}/${webhook.name}`,
      webhook,
    })),
  );
}
