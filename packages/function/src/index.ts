/** The domain: what a Function is, what it may say, and what follows from that. Pure. */

// What runs in a browser as well.
export * from "./browser.ts";

// What takes a digest.
export {
  buildExitCodes,
  type BuilderFlag,
  buildPaths,
  buildPrograms,
  type BuildStep,
  buildSteps,
  builtMessage,
  digestInMessage,
  leftOutInMessage,
  registryAuthorityVariable,
  sourceDigest,
} from "./builder-contract.ts";
export { followLink, type LinkEnd, type SourceEntryKind } from "./source-links.ts";
export { buildKey } from "./build-key.ts";
export { retryDemandOf } from "./retry-demand.ts";
export { type FailedRequest, failedMessage } from "./knative/failed-request.ts";
export { knativeChildName, knativeNames } from "./knative/names.ts";
export { boundedName, names, platformRepositories } from "./names.ts";
export { type Language, type Template, templates } from "./templates.ts";
