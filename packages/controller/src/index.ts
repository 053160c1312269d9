/** The Function Controller: turns Functions into running services, and checks them at admission. */
export { type ControllerConfig } from "./config.ts";
export { type FunctionControllerOptions, startFunctionController } from "./start.ts";
/** The cluster's configuration in one object, and what keeps the Function Controller to it. */
export {
  type ServerlessControllerOptions,
  startServerlessController,
  watchConfiguration,
} from "./serverless/start.ts";
export { type Configuration, type LogFormat } from "./serverless/configuration.ts";
export { servedOf } from "./serverless/election.ts";
export { Liveness } from "./serverless/liveness.ts";
export { Remarks } from "./serverless/remarks.ts";
export { serverlessCrd } from "./serverless/crd.ts";
export {
  internalRegistrySecret,
  type RegistryAccess,
  type RegistryLogins,
} from "./registry/registry-secret.ts";
export {
  deletionHook,
  type NatsSpec,
  type Serverless,
  serverlesses,
  type ServerlessSpec,
  type ServerlessStatus,
} from "./serverless/types.ts";
export { createPushWebhook, type PushWebhookOptions } from "./push/push-webhook.ts";
/** Where a namespace's images go, for programs that push there. */
export { type ActiveRegistry, activeRegistry, repositoryIn } from "./registry/registry.ts";
export { releaseRegistrySecrets } from "./registry/registry-finalizer.ts";
export { createAdmission } from "./admission/admission.ts";
export { conversionConfiguration } from "./admission/conversion.ts";
export {
  admissionConfigurations,
  webhookClientConfig,
  type WebhookLocation,
} from "./admission/admission-configurations.ts";
export {
  type ImagesInUse,
  imagesInUse,
  imageUses,
  kindsWithImages,
  type PlatformImages,
} from "./registry/images/images-in-use.ts";
export {
  type RegistryCleaning,
  type RegistryCleaningOptions,
  startRegistryCleaning,
} from "./registry/images/registry-cleaning.ts";
