import {
  annotations,
  childLabelsOf,
  type Function,
  knativeNames,
  type KService,
  latestTraffic,
  names,
  servedPodLabelsOf,
  type TrafficTarget,
} from "@spry/function";
import { type Container } from "@spry/kube";
import { type DesiredChild } from "../../children.ts";
import { type Settings } from "../../config.ts";
import {
  type DeploymentInputs,
  functionContainer,
  functionVolumes,
  podAnnotations,
} from "./deployment.ts";
import { podSecurityContext } from "./security.ts";

/** As in `autoscaling.knative.dev/pkg/apis/autoscaling/register.go`. */
const autoscaling = "autoscaling.knative.dev/";
/** The time that the runtime itself gives a handler (runtime contract, clause 6.2), unless the Function says otherwise. */
const defaultTimeoutSeconds = 180;
/** For the way of an answer that the runtime gives at its own limit. */
const timeoutMarginSeconds = 5;

/**
 * The Knative Service of a Function that is served on demand. Its template's name is that of the Function's revision, so
 * that revision N of the history is the Revision `<name>-0000N`.
 */
export function desiredKService(
  fn: Function,
  settings: Settings,
  inputs: DeploymentInputs & { revision: number },
): KService & DesiredChild {
  const { name = "", namespace = "" } = fn.metadata;
  const { concurrency = {}, timeoutSeconds = defaultTimeoutSeconds } = fn.spec;
  return {
    metadata: {
      name,
      namespace,
      labels: childLabelsOf(fn),
      annotations: { [annotations.buildKey]: inputs.buildKey },
    },
    spec: {
      template: {
        metadata: {
          name: knativeNames.revision(name, inputs.revision),
          labels: servedPodLabelsOf(fn),
          annotations: { ...podAnnotations(fn, inputs), ...scaleAnnotations(fn) },
        },
        spec: {
          serviceAccountName: names.serviceAccount,
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          containerConcurrency: concurrency.limit ?? 0,
          timeoutSeconds: timeoutSeconds + timeoutMarginSeconds,
          // A handler may take all of its time before the first byte; Knative's default is 300 s, however long the request.
          responseStartTimeoutSeconds: timeoutSeconds + timeoutMarginSeconds,
          containers: [container(fn, settings, inputs)],
          volumes: functionVolumes(fn),
        },
      },
      traffic: (fn.spec.traffic ?? latestTraffic).map((share) => targetOf(name, share)),
    },
  };
}

/** Bounds and aim of the scaler. Without bounds a Function has at least one Pod, as in the other way of serving. */
function scaleAnnotations({ spec }: Function): Record<string, string> {
  const { scaleConfig, concurrency } = spec;
  return {
    [`${autoscaling}min-scale`]: String(scaleConfig?.minReplicas ?? 1),
    ...(scaleConfig ? { [`${autoscaling}max-scale`]: String(scaleConfig.maxReplicas) } : {}),
    ...(concurrency?.target === undefined
      ? {}
      : { [`${autoscaling}target`]: String(concurrency.target) }),
  };
}

/**
 * The container, within what Knative permits in a template: a port without a name, no `PORT` (Knative sets it, from the port), and the
 * Pod's security context as the container's. Its definitions have no `privileged`, not even `false`, which is the default.
 */
function container(fn: Function, settings: Settings, inputs: DeploymentInputs): Container {
  const container = functionContainer(fn, settings, inputs);
  const { fsGroup: _group, ...identity } = {
    ...podSecurityContext,
    ...fn.spec.podSecurityContext,
  };
  const { privileged, ...security } = { ...identity, ...container.securityContext };
  return {
    ...container,
    env: (container.env ?? []).filter((each) => each.name !== "PORT" || each.value !== "8080"),
    ports: [{ containerPort: 8080, protocol: "TCP" }],
    securityContext: { ...security, ...(privileged ? { privileged } : {}) },
  };
}

function targetOf(
  name: string,
  { revision, percent = 0, tag }: NonNullable<Function["spec"]["traffic"]>[number],
): TrafficTarget {
  const which =
    revision === undefined
      ? { latestRevision: true }
      : { revisionName: knativeNames.revision(name, revision), latestRevision: false };
  return { ...which, percent, ...(tag === undefined ? {} : { tag }) };
}
