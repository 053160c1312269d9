const prefix = "serving.knative.dev/";

/** On the objects of Knative Serving (`knative.dev/serving/pkg/apis/serving/register.go`). */
export const knativeLabels = {
  service: `${prefix}service`,
  serviceUid: `${prefix}serviceUID`,
  configuration: `${prefix}configuration`,
  configurationUid: `${prefix}configurationUID`,
  configurationGeneration: `${prefix}configurationGeneration`,
  revision: `${prefix}revision`,
  revisionUid: `${prefix}revisionUID`,
  route: `${prefix}route`,
  routingState: `${prefix}routingState`,
  /** `cluster-local` takes a Route's host from the outside. */
  visibility: "networking.knative.dev/visibility",
  /** `Private` or `Public`, on the Services of a Revision, which no one calls by their names. */
  serviceType: "networking.internal.knative.dev/serviceType",
} as const;

export const knativeAnnotations = {
  creator: `${prefix}creator`,
  lastModifier: `${prefix}lastModifier`,
  routes: `${prefix}routes`,
  routingStateModified: `${prefix}routingStateModified`,
  noGc: `${prefix}no-gc`,
  progressDeadline: `${prefix}progress-deadline`,
  rolloutDuration: `${prefix}rollout-duration`,
  /** Ours, on the status of Routes: requests may name a tag by a header (`tag-header-based-routing`). */
  tagHeader: "serving.spry.io/tag-header",
} as const;

/**
 * The value of `endpointslice.kubernetes.io/managed-by` on the slices that lead callers inside the cluster to the
 * gateway. The gateway listens on the addresses and ports that they name, and never routes by them.
 */
export const gatewaySliceManager = "gateway.serving.spry";
