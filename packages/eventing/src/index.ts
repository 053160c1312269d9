/** CloudEvents: from the publisher through a queue to the sinks of Subscriptions. */
export { subscriptionCrd } from "./definitions/subscription-crd.ts";
export {
  type DefinitionOwner,
  definitionName as subscriptionsDefinition,
  ensureDefinitions as ensureEventingDefinitions,
} from "./definitions/ensure-definitions.ts";
export { administrationApi } from "./admin/aggregated.ts";
export { administrationStandIn } from "./admin/stand-in.ts";
export { type FrontProxy, frontProxyIn } from "./admin/front-proxy.ts";
export { eventingWebhooks } from "./conversion/review.ts";
export { startSubscriptions, type SubscriptionsOptions } from "./status/start.ts";
export { acceptCalls, type CallAcceptance } from "./calls/accept-calls.ts";
export { createPublisher, type PublisherDeps } from "./publisher/publisher.ts";
export { EventingMetrics } from "./metrics.ts";
export { type Eventing, type EventingOptions, type Leading, startEventing } from "./start.ts";
