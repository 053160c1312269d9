import { type Container, type PodSpec, type Probe } from "@spry/kube";

/** `SetDefaults_PodSpec`, `SetDefaults_Container` and what they call (`pkg/apis/core/v1/defaults.go`). */
export function setPodSpecDefaults(spec: PodSpec | undefined): void {
  if (!spec) return;
  spec.restartPolicy ??= "Always";
  spec.terminationGracePeriodSeconds ??= 30;
  spec.dnsPolicy ??= "ClusterFirst";
  spec.securityContext ??= {};
  spec.schedulerName ??= "default-scheduler";
  // The old name of a field goes along with the new one.
  if (spec.serviceAccountName) spec.serviceAccount = spec.serviceAccountName;
  else if (spec.serviceAccount) spec.serviceAccountName = spec.serviceAccount;
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    setContainerDefaults(container);
  }
  for (const volume of spec.volumes ?? []) setVolumeDefaults(volume);
}

/** `SetDefaults_Pod`: what a template leaves to the Pods that are made of it. */
export function setPodDefaults(spec: PodSpec): void {
  // A negative time has always meant the shortest one.
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) spec.terminationGracePeriodSeconds = 1;
  for (const { resources, ports } of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    if (resources?.limits) resources.requests = { ...resources.limits, ...resources.requests };
    if (!spec.hostNetwork) continue;
    for (const port of (ports ?? []) as { containerPort?: number; hostPort?: number }[]) {
      if (port.containerPort) port.hostPort ||= port.containerPort;
    }
  }
}

type PodVolume = NonNullable<PodSpec["volumes"]>[number];

function setVolumeDefaults(volume: PodVolume): void {
  if (volume.configMap) volume.configMap.defaultMode ??= 0o644;
  if (volume.secret) volume.secret.defaultMode ??= 0o644;
  if (volume.downwardAPI) volume.downwardAPI.defaultMode ??= 0o644;
  if (volume.hostPath) volume.hostPath.type ??= "";
  if (volume.projected) {
    volume.projected.defaultMode ??= 0o644;
    for (const { serviceAccountToken } of volume.projected.sources ?? []) {
      if (serviceAccountToken) serviceAccountToken.expirationSeconds ??= 3600;
    }
  }
  const sources = Object.keys(volume).filter((key) => key !== "name");
  if (sources.length === 0) volume.emptyDir = {};
}

function setContainerDefaults(container: Container): void {
  container.terminationMessagePath ??= "/dev/termination-log";
  container.terminationMessagePolicy ??= "File";
  container.imagePullPolicy ??= pullPolicyOf(container.image ?? "");
  container.resources ??= {};
  for (const port of container.ports ?? []) port.protocol ??= "TCP";
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) {
    setProbeDefaults(probe);
  }
  for (const hook of [container.lifecycle?.postStart, container.lifecycle?.preStop]) {
    setHttpDefaults(hook?.httpGet);
  }
  for (const variable of container.env ?? []) {
    if (variable.valueFrom?.fieldRef) variable.valueFrom.fieldRef.apiVersion ??= "v1";
  }
}

function setProbeDefaults(probe: Probe | undefined): void {
  if (!probe) return;
  probe.timeoutSeconds ??= 1;
  probe.periodSeconds ??= 10;
  probe.successThreshold ??= 1;
  probe.failureThreshold ??= 3;
  setHttpDefaults(probe.httpGet);
  const { grpc } = probe as { grpc?: { service?: string | null } };
  if (grpc) grpc.service ??= "";
}

function setHttpDefaults(action: Probe["httpGet"]): void {
  if (!action) return;
  action.path ??= "/";
  action.scheme ??= "HTTP";
}

/** Only a tag that may move is pulled again every time. */
function pullPolicyOf(image: string): "Always" | "IfNotPresent" {
  const name = image.slice(image.lastIndexOf("/") + 1);
  if (name.includes("@")) return "IfNotPresent";
  const tag = name.split(":")[1] ?? "latest";
  return tag === "latest" ? "Always" : "IfNotPresent";
}
