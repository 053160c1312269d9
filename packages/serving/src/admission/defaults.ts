import {
  type ConfigurationSpec,
  knativeChildName,
  type RevisionSpec,
  type RouteSpec,
} from "@spry/function";
import { type Container, type Probe } from "@spry/kube";
import { type DefaultSettings } from "../settings/default-settings.ts";

/** What every default follows from: the settings, and the name of the Service or Configuration that has the template. */
export interface DefaultContext {
  settings: DefaultSettings;
  parent: string;
  isCreate: boolean;
}

/**
 * The template's defaults (knative.dev/serving/pkg/apis/serving/v1/revision_defaults.go). A template whose name the user gave
 * is left as it is while that name stays: a Revision of that name exists, and cannot change.
 */
export function withConfigurationDefaults<T extends ConfigurationSpec>(
  spec: T,
  previous: ConfigurationSpec | undefined,
  context: DefaultContext,
): T {
  const name = spec.template?.metadata?.name;
  if (name && previous?.template?.metadata?.name === name) return spec;
  const { template } = spec;
  return {
    ...spec,
    template: { ...template, spec: withRevisionDefaults(template?.spec ?? {}, context) },
  };
}

export function withRevisionDefaults(spec: RevisionSpec, context: DefaultContext): RevisionSpec {
  const { settings, isCreate } = context;
  const timeoutSeconds = spec.timeoutSeconds || settings.timeoutSeconds;
  const within = (given: number | undefined, fallback: number) =>
    given ?? (fallback !== 0 && fallback < timeoutSeconds ? fallback : undefined);
  const responseStart = within(
    spec.responseStartTimeoutSeconds,
    settings.responseStartTimeoutSeconds,
  );
  const idle = within(spec.idleTimeoutSeconds, settings.idleTimeoutSeconds);
  const links = spec.enableServiceLinks ?? (isCreate ? settings.enableServiceLinks : undefined);
  const containers = listOf(spec.containers);
  const initContainers = listOf(spec.initContainers);
  const names = new Set([...containers, ...initContainers].map(({ name }) => name));
  const nameFrom = (template: string) => template.replaceAll("{{.Name}}", context.parent);
  const named = withNames(containers, names, nameFrom(settings.containerName));
  return {
    ...spec,
    timeoutSeconds,
    ...(responseStart === undefined ? {} : { responseStartTimeoutSeconds: responseStart }),
    ...(idle === undefined ? {} : { idleTimeoutSeconds: idle }),
    containerConcurrency: spec.containerConcurrency ?? settings.containerConcurrency,
    ...(links === undefined ? {} : { enableServiceLinks: links }),
    containers: named.map((container) =>
      withContainerDefaults(container, { ...spec, containers: named }, settings),
    ),
    ...(initContainers.length > 0
      ? {
          initContainers: withNames(initContainers, names, nameFrom(settings.initContainerName)),
        }
      : {}),
  };
}

function listOf<T>(value: readonly T[] | undefined): T[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "object" && each) : [];
}

function withNames(
  containers: readonly Container[],
  taken: Set<string>,
  fallback: string,
): Container[] {
  let suffix = 0;
  return containers.map((container) => {
    if (container.name) return container;
    let name = fallback;
    if (containers.length > 1 || taken.has(name)) {
      do name = knativeChildName(fallback, `-${suffix++}`);
      while (taken.has(name));
    }
    return { ...container, name };
  });
}

function withContainerDefaults(
  container: Container,
  { containers, volumes }: RevisionSpec,
  settings: DefaultSettings,
): Container {
  const requests = { ...settings.requests, ...container.resources?.requests };
  const limits = { ...settings.limits, ...container.resources?.limits };
  const resources = {
    ...container.resources,
    ...(Object.keys(requests).length > 0 ? { requests } : {}),
    ...(Object.keys(limits).length > 0 ? { limits } : {}),
  };
  const serves = containers.length === 1 || (container.ports ?? []).length > 0;
  const readinessProbe = readinessOf(container, serves);
  const writable = new Set(
    listOf(volumes)
      .filter(
        (each) =>
          each.emptyDir ??
          each.persistentVolumeClaim ??
          each.ephemeral ??
          each.hostPath ??
          each.csi,
      )
      .map(({ name }) => name),
  );
  const mounts = listOf(container.volumeMounts).map((mount) =>
    writable.has(mount.name) ? mount : { ...mount, readOnly: true },
  );
  return {
    ...container,
    resources,
    ...(readinessProbe ? { readinessProbe } : {}),
    ...(mounts.length > 0 ? { volumeMounts: mounts } : {}),
  };
}

/** The container that serves is ready when something listens on its port, if nothing else is said. */
function readinessOf(container: Container, serves: boolean): Probe | undefined {
  const given = container.readinessProbe;
  if (!given && !serves) return undefined;
  const probe: Probe = { ...given };
  const hasHandler = probe.tcpSocket ?? probe.httpGet ?? probe.exec ?? probe.grpc;
  if (!hasHandler && serves) probe.tcpSocket = { port: 0 };
  probe.successThreshold = probe.successThreshold || 1;
  if (probe.periodSeconds) {
    probe.failureThreshold = probe.failureThreshold || 3;
    probe.timeoutSeconds = probe.timeoutSeconds || 1;
  }
  if (probe.grpc) probe.grpc = { ...probe.grpc, service: probe.grpc.service ?? "" };
  return probe;
}

/** In a Service, no traffic at all means all of it to the latest Revision. */
export function withTrafficDefaults<T extends RouteSpec>(spec: T, ofService: boolean): T {
  const given = listOf(spec.traffic);
  if (given.length === 0)
    return ofService ? { ...spec, traffic: [{ latestRevision: true, percent: 100 }] } : spec;
  const traffic = given.map((target) => ({
    ...target,
    latestRevision: target.latestRevision ?? !target.revisionName,
    percent: target.percent ?? 0,
  }));
  return { ...spec, traffic };
}
