/**
 * The part of this room that also runs in a browser: no module of Node.js, no `Buffer`, no `process`
 * (`browser.test.ts` follows every import). A browser's transport is `fetch`.
 */

// What travels: objects, kinds, errors.
export {
  elementsOf,
  elementTexts,
  indentJson,
  type JsonMember,
  JsonText,
  membersOf,
  memberText,
  stringifyJson,
} from "./json-text.ts";
export { labelKeyProblems, labelValueProblems } from "./label-selector-parser.ts";
export {
  keyOf,
  type KubeList,
  type KubeObject,
  type ListMeta,
  type ManagedFieldsEntry,
  type ObjectKey,
  type ObjectMeta,
  type OwnerReference,
  splitKey,
  type UnknownObject,
  type WatchEvent,
} from "./objects.ts";

// The kinds that Spry works with; `resources` says how each is addressed.
export {
  apiVersionOf,
  type ConfigMap,
  type Container,
  type ContainerStatus,
  type CronJob,
  type CustomResourceDefinition,
  type Deployment,
  type Endpoints,
  type EndpointSlice,
  type EnvVar,
  type Event,
  type HorizontalPodAutoscaler,
  type Job,
  type Lease,
  type MutatingWebhookConfiguration,
  type Namespace,
  type NetworkPolicy,
  type PodDisruptionBudget,
  type Node,
  pathOf,
  type Pod,
  type PodSpec,
  type PodTemplateSpec,
  type Probe,
  type ReplicaSet,
  type Resource,
  type ResourceQuota,
  type ResourceRequirements,
  resources,
  type Secret,
  type Service,
  type ServiceAccount,
  type ValidatingWebhookConfiguration,
  type Volume,
  type VolumeMount,
} from "./resources.ts";
export {
  isAlreadyExists,
  isBadRequest,
  isConflict,
  isForbidden,
  isGone,
  isInvalid,
  isNamespaceTerminating,
  isNotFound,
  messageOf,
  type Status,
  type StatusCause,
  StatusError,
} from "./errors.ts";

// What objects use of a namespace's quota.
export { podAmounts } from "./quota/pod-resources.ts";
export { usageOf } from "./quota/pod-usage.ts";
export {
  countedResource,
  type QuotaEvaluator,
  quotaEvaluatorOf,
  type ScopeRequirement,
  scopesOf,
} from "./quota/quota-evaluator.ts";
export {
  type Amounts,
  amountsOf,
  excessOf,
  masked,
  resourceListOf,
  sumOf,
} from "./quota/resource-list.ts";

// Talking to an API server.
export {
  type Ask,
  type PlainRequest,
  type PlainResponse,
  type Transport,
  transportOf,
  transportOrigin,
} from "./transport.ts";
export {
  type DeleteOptions,
  KubeClient,
  type ListOptions,
  type PatchType,
  type Target,
  type WatchOptions,
  type WriteOptions,
} from "./client.ts";
export { readLines } from "./lines.ts";

// Reacting to it.
export { type Change, Informer, type InformerOptions } from "./informer.ts";
export { WorkQueue, type WorkQueueOptions } from "./work-queue.ts";

// The conventions of the objects.
export { type Condition, getCondition, isConditionTrue, setCondition } from "./conditions.ts";
export { controllerOf, controllerRef, isControlledBy } from "./owner.ts";
export {
  formatLabelSelector,
  isLabelKey,
  isLabelValue,
  type LabelRequirement,
  type LabelSelector,
  matchesLabels,
  parseLabelSelector,
  requirementsOf,
  selectorMatches,
} from "./label-selector.ts";
export {
  type FieldRequirement,
  formatFieldSelector,
  matchesFields,
  parseFieldSelector,
} from "./field-selector.ts";
export {
  addQuantities,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  type Quantity,
  quantityValue,
} from "./quantity.ts";
export { applyMergePatch, deepEqual, mergePatchBetween } from "./json.ts";

// Time, pace and words.
export { type Clock, clockJumps, onClockSet, sleep, systemClock, timestamp } from "./clock.ts";
export { TokenBucket } from "./token-bucket.ts";
export { type Logger, silentLogger } from "./log.ts";
