import { answerConversion } from "@spry/kube";
import { conversionPath } from "../definitions/ensure-definitions.ts";
import { convertSubscription } from "./convert.ts";

/** The webhook of Subscriptions. */
export const eventingWebhooks = {
  /** Undefined for any other request. */
  answers(request: Request): Promise<Response> | undefined {
    if (new URL(request.url).pathname !== conversionPath) return undefined;
    return answerConversion(request, "Subscription", convertSubscription);
  },
};
