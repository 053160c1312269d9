import { type RevisionSpec } from "@spry/function";
import { type Container } from "@spry/kube";
import { type DefaultSettings } from "../settings/default-settings.ts";
import { type FeatureSettings, fieldsByFeature } from "../settings/feature-settings.ts";
import { type Settings } from "../settings/settings.ts";
import { checkContainer } from "./container.ts";
import { FieldErrors, onlyFields } from "./field-error.ts";
import { subdomainProblem } from "./names.ts";
import { checkProbes } from "./probes.ts";
import { checkVolumes } from "./volumes.ts";

const fields = [
  "containerConcurrency",
  "timeoutSeconds",
  "responseStartTimeoutSeconds",
  "idleTimeoutSeconds",
  "serviceAccountName",
  "containers",
  "volumes",
  "imagePullSecrets",
  "enableServiceLinks",
  // Its fields are checked below.
  "securityContext",
  // Handled below: Knative refuses them with words of its own.
  "initContainers",
];
const podSecurity = [
  "fsGroup",
  "runAsGroup",
  "runAsNonRoot",
  "runAsUser",
  "supplementalGroups",
  "seccompProfile",
];
const maxContainers = 50;

/** What a Revision may say about its Pods (knative.dev/serving/pkg/apis/serving/k8s_validation.go). */
export function checkRevisionSpec(
  spec: RevisionSpec,
  { defaults, features }: Pick<Settings, "defaults" | "features">,
): FieldErrors {
  const switchedOn = Object.entries(fieldsByFeature).flatMap(([field, feature]) =>
    features[feature] === "Disabled" ? [] : [field],
  );
  const errors = onlyFields(spec, [...fields, ...switchedOn]);
  const containers = spec.containers ?? [];
  const { initContainers = [], volumes = [], serviceAccountName } = spec;
  const security = features["kubernetes.podspec-securitycontext"] === "Disabled" ? [] : podSecurity;
  errors.via("securityContext", onlyFields(spec.securityContext, security));
  const mounted = new Set(
    [...initContainers, ...containers].flatMap(({ volumeMounts = [] }) =>
      volumeMounts.map(({ name }) => name),
    ),
  );
  errors.via("volumes", checkVolumes(volumes, mounted, features));
  checkInitContainers(errors, spec, features);
  checkContainers(errors, spec, features);
  if (serviceAccountName) {
    const problem = subdomainProblem(serviceAccountName);
    if (problem) errors.invalid(serviceAccountName, "serviceAccountName", problem);
  }
  return checkLimits(errors, spec, defaults);
}

function checkInitContainers(
  errors: FieldErrors,
  { initContainers = [], containers, volumes = [] }: RevisionSpec,
  features: FeatureSettings,
): void {
  if (initContainers.length === 0) return;
  if (features["kubernetes.podspec-init-containers"] !== "Enabled")
    return void errors.add(
      `pod spec support for init-containers is off, but found ${initContainers.length} init containers`,
      "initContainers",
    );
  if (initContainers.length > maxContainers)
    return void errors.add(`expected at most ${maxContainers} containers`, "initContainers");
  const names = new Set((containers as readonly Container[] | undefined)?.map(({ name }) => name));
  for (const [i, container] of initContainers.entries()) {
    const { livenessProbe, readinessProbe, startupProbe, ...rest } = container;
    const own = new FieldErrors();
    if (names.has(container.name))
      own.add(`duplicate container name ${JSON.stringify(container.name)}`, "name");
    names.add(container.name);
    const probes = { livenessProbe, readinessProbe, startupProbe };
    for (const [field, probe] of Object.entries(probes))
      if (probe) own.add("field not allowed in an init container", field);
    own.via("", checkContainer(rest, volumes, { sidecar: true, features }));
    errors.via(`initContainers[${i}]`, own);
  }
}

function checkContainers(errors: FieldErrors, spec: RevisionSpec, features: FeatureSettings): void {
  const { volumes = [] } = spec;
  const containers = spec.containers ?? [];
  if (containers.length === 0) return void errors.missing("containers");
  if (containers.length > maxContainers)
    return void errors.add(`expected at most ${maxContainers} containers`, "containers");
  if (containers.length > 1 && features["multi-container"] !== "Enabled")
    return void errors.add(
      `multi-container is off, but found ${containers.length} containers`,
      "containers",
    );
  const ports = containers.flatMap((container) => container.ports ?? []);
  if (ports.length === 0 && containers.length > 1) errors.missing("containers[*].ports");
  if (ports.length > 1)
    errors.add(
      "more than one container port is set",
      "containers[*].ports",
      "Only a single port is allowed across all containers",
    );
  const names = new Set<string>();
  for (const [i, container] of containers.entries()) {
    const own = new FieldErrors();
    const { name } = container;
    if (names.has(name)) own.add(`duplicate container name ${JSON.stringify(name)}`, "name");
    names.add(name);
    const sidecar = isSidecar(container, containers);
    own.via("", checkProbes(container, sidecar ? undefined : ports.at(-1)?.name || "http"));
    own.via("", checkContainer(container, volumes, { sidecar, features }));
    errors.via(`containers[${i}]`, own);
  }
}

/** Of several containers the one with a port serves. */
export function isSidecar(container: Container, all: readonly Container[]): boolean {
  return all.length > 1 && (container.ports ?? []).length === 0;
}

function checkLimits(
  errors: FieldErrors,
  spec: RevisionSpec,
  settings: DefaultSettings,
): FieldErrors {
  const { timeoutSeconds, containerConcurrency } = spec;
  const longest = settings.maxTimeoutSeconds;
  for (const field of [
    "timeoutSeconds",
    "responseStartTimeoutSeconds",
    "idleTimeoutSeconds",
  ] as const) {
    const seconds = spec[field];
    if (seconds !== undefined && (seconds < 0 || seconds > longest))
      errors.outOfBounds(seconds, 0, longest, field);
    else if (seconds && timeoutSeconds && field !== "timeoutSeconds" && seconds > timeoutSeconds)
      errors.outOfBounds(seconds, 0, timeoutSeconds, field);
  }
  if (containerConcurrency !== undefined) {
    const least = settings.allowContainerConcurrencyZero ? 0 : 1;
    const most = settings.maxContainerConcurrency;
    if (containerConcurrency < least || containerConcurrency > most)
      errors.outOfBounds(containerConcurrency, least, most, "containerConcurrency");
  }
  return errors;
}
