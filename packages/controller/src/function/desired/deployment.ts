import {
  annotations,
  childLabelsOf,
  environmentOf,
  type HeapSizing,
  type Function,
  names,
  podLabelsOf,
  podSelectorOf,
  resolveResources,
} from "@spry/function";
import {
  type Container,
  type Deployment,
  type PodTemplateSpec,
  type Probe,
  type Volume,
  type VolumeMount,
} from "@spry/kube";
import { type DesiredChild } from "../../children.ts";
import { type Settings } from "../../config.ts";
import { containerSecurityContext, podSecurityContext } from "./security.ts";

/** What a Deployment follows from, besides the Function. */
export interface DeploymentInputs {
  /** By digest. */
  image: string;
  buildKey: string;
  /** Digest of the Secrets and ConfigMaps that the Function refers to, if it does. */
  references?: string | undefined;
  /** How heaps are sized by their containers; another way than the newest is as it was before that. */
  heapSizing?: HeapSizing | undefined;
}

const port = 8080;
/** Time for requests under way; a Pod without any ends at once. */
const terminationGracePeriodSeconds = 60;

export function desiredDeployment(
  fn: Function,
  settings: Settings,
  inputs: DeploymentInputs,
): Deployment & DesiredChild {
  const { name = "", namespace = "" } = fn.metadata;
  return {
    metadata: {
      name: names.deployment(name),
      namespace,
      labels: childLabelsOf(fn),
      annotations: { [annotations.buildKey]: inputs.buildKey },
    },
    spec: {
      replicas: fn.spec.replicas ?? 1,
      revisionHistoryLimit: 0,
      selector: { matchLabels: podSelectorOf(fn) },
      // The old Pods serve until the new ones are ready.
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: "25%" } },
      template: podTemplate(fn, settings, inputs),
    },
  };
}

function podTemplate(fn: Function, settings: Settings, inputs: DeploymentInputs): PodTemplateSpec {
  return {
    metadata: {
      labels: podLabelsOf(fn),
      annotations: podAnnotations(fn, inputs),
    },
    spec: {
      serviceAccountName: names.serviceAccount,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds,
      securityContext: { ...podSecurityContext, ...fn.spec.podSecurityContext },
      containers: [functionContainer(fn, settings, inputs)],
      volumes: functionVolumes(fn),
    },
  };
}

/** Of the Pods of either way of serving. */
export function podAnnotations(fn: Function, inputs: DeploymentInputs): Record<string, string> {
  return {
    [annotations.istioProxyConfig]: '{ "holdApplicationUntilProxyStarts": true }',
    ...fn.spec.annotations,
    ...(inputs.references ? { [annotations.references]: inputs.references } : {}),
  };
}

/** The one container of the Function's Pods. */
export function functionContainer(
  fn: Function,
  settings: Settings,
  inputs: DeploymentInputs,
): Container {
  const { image, heapSizing } = inputs;
  const { resourceConfiguration } = fn.spec;
  const { resources } = resolveResources(
    "function",
    resourceConfiguration?.function,
    settings.defaultFunctionPreset,
  );
  const memoryLimit = resources.limits?.["memory"];
  return {
    name: names.container,
    image,
    imagePullPolicy: "IfNotPresent",
    env: environmentOf(fn, { ...settings, memoryLimit, heapSizing }),
    ports: [{ name: "http", containerPort: port, protocol: "TCP" }],
    resources,
    ...probes(),
    securityContext: { ...containerSecurityContext, ...fn.spec.containerSecurityContext },
    // Why a handler did not load is the end of what it wrote.
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: volumeMounts(fn),
  };
}

/** The startup probe runs every second for up to 150 s; a single missed readiness probe has no effect. */
function probes(): { startupProbe: Probe; readinessProbe: Probe; livenessProbe: Probe } {
  const httpGet = { path: "/healthz", port };
  return {
    startupProbe: { httpGet, periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 150 },
    readinessProbe: { httpGet, periodSeconds: 5, timeoutSeconds: 2, failureThreshold: 3 },
    livenessProbe: { httpGet, periodSeconds: 5, timeoutSeconds: 4, failureThreshold: 3 },
  };
}

/** What its container mounts: a scratch directory and the Function's Secrets. */
export function functionVolumes(fn: Function): Volume[] {
  const secrets = (fn.spec.secretMounts ?? []).map(({ secretName }) => ({
    name: names.secretVolume(secretName),
    secret: { secretName, defaultMode: 0o666, optional: false },
  }));
  return [{ name: "tmp-dir", emptyDir: { sizeLimit: "100Mi" } }, ...secrets];
}

function volumeMounts(fn: Function): VolumeMount[] {
  const secrets = (fn.spec.secretMounts ?? []).map(({ secretName, mountPath }) => ({
    name: names.secretVolume(secretName),
    mountPath,
    readOnly: true,
  }));
  return [{ name: "tmp-dir", mountPath: "/tmp" }, ...secrets];
}
