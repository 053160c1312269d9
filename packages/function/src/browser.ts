/**
 * The part of the domain that also runs in a browser: no module of Node.js, no `Buffer`, no `process` (a test of
 * `@spry/kube` follows every import). Only what takes a digest is missing: names and build keys.
 */
export {
  type BuildStatus,
  type Concurrency,
  type Function,
  type FunctionCondition,
  type FunctionSchedule,
  functions,
  type FunctionSpec,
  type FunctionStatus,
  type GitRepositorySource,
  type InlineSource,
  type ResourceProfile,
  type ScaleConfig,
  type SecretMount,
  type TrafficShare,
} from "./types.ts";
export {
  type ConditionType,
  conditionTypes,
  type HealthConditionType,
  healthConditionTypes,
  type Reason,
  statusOfReason,
} from "./conditions.ts";
export { functionCrd } from "./crd.ts";
export { defaultFunction } from "./defaults.ts";
export {
  type FunctionRevision,
  functionRevisions,
  historyLimits,
  isSameVersion,
  recordedSpec,
  restoredSpec,
  type RevisionData,
  revisionsOf,
  type Version,
} from "./history.ts";
export { isServedOnDemand, latestTraffic, servingBounds } from "./serving.ts";
export { cronProblem, timeZoneProblem } from "./validate-schedules.ts";
export { type FieldError } from "./field-error.ts";
export { specShapeErrors, validateFunction } from "./validate.ts";
export {
  defaultRuntime,
  deprecationOf,
  findRuntime,
  retiredRuntimes,
  type Runtime,
  runtimeOf,
  runtimes,
} from "./runtimes.ts";
export {
  type BuildPreset,
  type DefaultPresets,
  defaultPresetsForNodes,
  type FunctionPreset,
  type PresetKind,
  presets,
  resolveResources,
} from "./presets.ts";
export { dependenciesOf } from "./dependencies.ts";
export {
  broughtPackages,
  type Declaring,
  packageSpec,
  undeclaredOf,
  undeclaredPackages,
} from "./undeclared-packages.ts";
export {
  environmentOf,
  type EnvironmentSettings,
  type HeapSizing,
  heapSizings,
  reservedEnvNames,
} from "./environment.ts";
export {
  annotations,
  childLabelsOf,
  labelPrefix,
  labels,
  labelsOf,
  managedBy,
  managedByUser,
  registryFinalizer,
  podLabelsOf,
  podSelectorOf,
  servedPodLabelsOf,
  servedPodSelectorOf,
} from "./labels.ts";
/** The version before, and how the two become each other. */
export { gitRepositoryCrd } from "./v1alpha1/crd.ts";
export { repositoryNameOf, toV1alpha1, toV1alpha2 } from "./v1alpha1/convert.ts";
export {
  functionsV1alpha1,
  type FunctionV1alpha1,
  gitRepositories,
  type GitRepository,
} from "./v1alpha1/types.ts";
/** Knative Serving: what the rooms that serve, route and ask for it share. */
export * from "./knative/browser.ts";
/** Exposure: APIRules and Gateways, and the routes that follow from them. */
export * from "./exposure/browser.ts";
export {
  type ImageReason,
  type ImageUsage,
  type RegistryUsage,
  type RepositoryKind,
  type RepositoryUsage,
} from "./registry-usage.ts";
/** Which events a Service gets, and calls that may wait. */
export * from "./eventing/browser.ts";
