import { knativeLabels } from "./knative/labels.ts";
import { type Function } from "./types.ts";

/** How keys of labels and annotations of the Function's domain start (docs/compatibility.md#labels). */
export const labelPrefix = "serverless.kyma-project.io/";

export const labels = {
  functionName: `${labelPrefix}function-name`,
  managedBy: `${labelPrefix}managed-by`,
  uuid: `${labelPrefix}uuid`,
  resource: `${labelPrefix}resource`,
  /** On what the base namespace hands out: `credentials`, `service-account`, `runtime`. */
  config: `${labelPrefix}config`,
  /** `config` on the Secret by which a namespace chooses its registry. */
  remoteRegistry: `${labelPrefix}remote-registry`,
  name: "app.kubernetes.io/name",
} as const;

export const annotations = {
  /** Ours, on a child: digest of what it was asked to be when it was last written. */
  desired: `${labelPrefix}desired`,
  /** Ours, on the Deployment and Jobs: the build key of the image. */
  buildKey: `${labelPrefix}build-key`,
  /** Ours, on Jobs: the pull address of the registry that the image goes to. */
  registry: `${labelPrefix}registry`,
  /** Ours, on Jobs: the Secret with what the build is at the platform's own registry. */
  registryLogin: `${labelPrefix}registry-login`,
  /** Ours, on Pods: digest of the Secrets and ConfigMaps that the Function refers to. */
  references: `${labelPrefix}references`,
  /** On a Function: "true" checks the Git reference as often as is allowed. */
  continuousGitCheckout: `${labelPrefix}continuousGitCheckout`,
  /** Ours, on a Function: how often the Git reference is checked, as `30s`, `5m`, `1h` or `off`. */
  gitCheckInterval: `${labelPrefix}git-check-interval`,
  /** Ours, on a Function: a new value checks the Git reference at once. */
  gitCheck: `${labelPrefix}git-check`,
  /** Ours, on a Function: a new value builds again, even the same source. */
  rebuild: `${labelPrefix}rebuild`,
  /** Ours, on a Function and its Jobs: a new value tries a build that has failed once more, at once (`retryDemandOf`). */
  retryBuild: `${labelPrefix}retry-build`,
  /** Ours, on a ControllerRevision: "true" once its version has been ready. */
  served: `${labelPrefix}served`,
  /** Ours, on a Function: the directory of whose name the Function's was made. */
  directory: `${labelPrefix}directory`,
  /** Ours, on a Function: the digest of a source image that needs no packages and has no build script (docs/adr/0019-sources-as-images.md). */
  plainSource: `${labelPrefix}plain-source`,
  /** Ours, on a Function: the user whose request changed its spec last; only admission writes it. */
  lastModifier: `${labelPrefix}last-modifier`,
  istioProxyConfig: "proxy.istio.io/config",
  istioInject: "sidecar.istio.io/inject",
} as const;

/** On the Secrets of the base namespace whose copies are to go before them. */
export const registryFinalizer = `${labelPrefix}finalizer-registry-config`;

/** The value of `managed-by` on everything that the Function Controller makes. */
export const managedBy = "function-controller";
/** The value of `managed-by` on copies that a user has taken over. */
export const managedByUser = "user";

/** The labels that identify a Function's children. */
export function labelsOf(fn: Function): Record<string, string> {
  return {
    [labels.functionName]: fn.metadata.name ?? "",
    [labels.managedBy]: managedBy,
    [labels.uuid]: fn.metadata.uid ?? "",
  };
}

/** The labels of a child itself: the Function's own, below ours. */
export function childLabelsOf(fn: Function): Record<string, string> {
  return { ...fn.metadata.labels, ...labelsOf(fn) };
}

/** Exactly the four labels by which Deployment and Service select the Function's Pods. */
export function podSelectorOf(fn: Function): Record<string, string> {
  return { ...labelsOf(fn), [labels.resource]: "deployment" };
}

/**
 * The labels of Pods that a Knative Service runs. Without `resource: deployment`, so that the Deployment and the
 * autoscaler of the other way of serving do not count them.
 */
export function servedPodLabelsOf(fn: Function): Record<string, string> {
  return { ...fn.spec.labels, [labels.name]: fn.metadata.name ?? "", ...labelsOf(fn) };
}

/** Selects them, and none of builds. */
export function servedPodSelectorOf(fn: Function): Record<string, string> {
  return { ...labelsOf(fn), [knativeLabels.service]: fn.metadata.name ?? "" };
}

export function podLabelsOf(fn: Function): Record<string, string> {
  return { ...fn.spec.labels, [labels.name]: fn.metadata.name ?? "", ...podSelectorOf(fn) };
}
