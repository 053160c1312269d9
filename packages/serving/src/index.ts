/** Knative Serving API v1 without sidecars: Service, Configuration, Revision, Route, and the scaler that requests drive. */
export { type DigestResolver, type GatewayAddressing, type ServingOptions } from "./options.ts";
export { startServing } from "./start.ts";
export { keepServing, type KeepServingOptions } from "./keep-serving.ts";

/** Where gateways have to be reachable. */
export { gatewayPorts } from "./reconcile/places.ts";

/** What an API server has to know of it. */
export { servingCrds } from "./crds.ts";
export { installServing, type Ownership, servingOwnership } from "./definitions.ts";

/** The webhooks. */
export { createServingAdmission, servingWebhookPath } from "./admission/admission.ts";
export { dryRunPods } from "./admission/dry-run.ts";
export {
  type ClientConfigOf,
  servingAdmissionConfigurations,
  servingWebhookNames,
} from "./admission/configurations.ts";
export { type Settings, settingsNamespace, SettingsWatch } from "./settings/settings.ts";
