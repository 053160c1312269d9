import { type Container, deepEqual, type EnvVar, type Volume } from "@spry/kube";
import { type FeatureSettings } from "../settings/feature-settings.ts";
import { FieldErrors, onlyFields } from "./field-error.ts";
import { checkMounts } from "./volumes.ts";

const maxId = 2 ** 31 - 1;
const fields = [
  "name",
  "args",
  "command",
  "env",
  "workingDir",
  "envFrom",
  "image",
  "imagePullPolicy",
  "livenessProbe",
  "ports",
  "readinessProbe",
  "resources",
  "securityContext",
  "startupProbe",
  "terminationMessagePath",
  "terminationMessagePolicy",
  "volumeMounts",
];
const securityFields = [
  "capabilities",
  "readOnlyRootFilesystem",
  "runAsUser",
  "runAsGroup",
  "runAsNonRoot",
  "allowPrivilegeEscalation",
  "seccompProfile",
];
/** Of queue-proxy, autoscaler and profiling: images that keep clear of them run here as they do there. */
const reservedPorts = [8008, 8012, 8013, 8022, 9090, 9091];
const reservedEnv = ["PORT", "K_SERVICE", "K_CONFIGURATION", "K_REVISION"];
/** `[registry/]repository[:tag][@digest]` (github.com/google/go-containerregistry/pkg/name, weak validation). */
const reference =
  /^(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::\d+)?\/)?[a-z0-9_.\-/]{1,255}(?::[A-Za-z0-9_.-]{1,128})?(?:@sha256:[a-f0-9]{64})?$/;

export interface ContainerOptions {
  /** One that does not serve may set PORT itself. */
  sidecar: boolean;
  features: FeatureSettings;
}

export function checkContainer(
  container: Container,
  volumes: readonly Volume[],
  options: ContainerOptions,
): FieldErrors {
  if (deepEqual(container, {})) return new FieldErrors().missing("");
  const errors = onlyFields(container, fields);
  const { name, image, env = [], envFrom = [], terminationMessagePolicy: policy } = container;
  if (name === "queue-proxy")
    errors.add(`${JSON.stringify(name)} is a reserved container name`, "name");
  for (const [i, variable] of env.entries())
    errors.via(`env[${i}]`, checkVariable(variable, options));
  for (const [i, source] of envFrom.entries()) errors.via("envFrom", checkEnvFrom(source, i));
  if (!image) errors.missing("image");
  else if (image.length > 1024 || !reference.test(image))
    errors.add(
      "Failed to parse image reference",
      "image",
      `image: ${JSON.stringify(image)}, error: could not parse reference: ${image}`,
    );
  errors.via("ports", checkPorts(container));
  errors.via("resources", onlyFields(container.resources, ["limits", "requests"]));
  errors.via("securityContext", checkSecurity(container.securityContext, options.features));
  if (policy && policy !== "File" && policy !== "FallbackToLogsOnError")
    errors.invalid(policy, "terminationMessagePolicy");
  return errors.via("volumeMounts", checkMounts(container.volumeMounts ?? [], volumes));
}

function checkVariable(variable: EnvVar, { sidecar, features }: ContainerOptions): FieldErrors {
  const errors = onlyFields(variable, ["name", "value", "valueFrom"]);
  const { name, valueFrom } = variable;
  if (!name) errors.missing("name");
  else if (reservedEnv.includes(name) && !(sidecar && name === "PORT"))
    errors.add(`${JSON.stringify(name)} is a reserved environment variable`, "name");
  const own =
    features["kubernetes.podspec-fieldref"] === "Disabled" ? [] : ["fieldRef", "resourceFieldRef"];
  return errors.via(
    "valueFrom",
    onlyFields(valueFrom, ["configMapKeyRef", "secretKeyRef", ...own]),
  );
}

type EnvFrom = NonNullable<Container["envFrom"]>[number];

function checkEnvFrom(source: EnvFrom, i: number): FieldErrors {
  const errors = new FieldErrors();
  errors.via(`[${i}]`, onlyFields(source, ["prefix", "configMapRef", "secretRef"]));
  const { configMapRef, secretRef } = source;
  for (const [field, part] of Object.entries({ configMapRef, secretRef }))
    errors.via(`${field}[${i}]`, onlyFields(part, ["name", "optional"]));
  if (configMapRef && secretRef) errors.multipleOneOf("configMapRef", "secretRef");
  if (!configMapRef && !secretRef) errors.missingOneOf("configMapRef", "secretRef");
  return errors;
}

function checkPorts({ ports = [] }: Container): FieldErrors {
  const errors = new FieldErrors();
  const [port] = ports;
  if (!port) return errors;
  const { name = "", protocol } = port;
  const containerPort = port.containerPort ?? 0;
  errors.via("", onlyFields(port, ["containerPort", "name", "protocol"]));
  if (reservedPorts.includes(containerPort))
    errors.invalid(
      `${containerPort} is a reserved port`,
      "containerPort",
      `${containerPort} is a reserved port, please use a different value`,
    );
  if (containerPort < 0 || containerPort > 65_535)
    errors.outOfBounds(containerPort, 0, 65_535, "containerPort");
  if (protocol && protocol !== "TCP") errors.invalid(protocol, "protocol");
  if (!["", "h2c", "http1"].includes(name))
    errors.add(
      `Port name ${name} is not allowed`,
      "",
      "Name must be empty, or one of: 'h2c', 'http1'",
    );
  return errors;
}

function checkSecurity(
  context: Container["securityContext"],
  features: FeatureSettings,
): FieldErrors {
  if (!context) return new FieldErrors();
  const errors = onlyFields(context, securityFields);
  const mayAdd = features["kubernetes.containerspec-addcapabilities"] !== "Disabled";
  const capabilities = mayAdd ? ["add", "drop"] : ["drop"];
  errors.via("capabilities", onlyFields(context.capabilities, capabilities));
  for (const field of ["runAsUser", "runAsGroup"] as const) {
    const id = context[field];
    if (id !== undefined && (id < 0 || id > maxId)) errors.outOfBounds(id, 0, maxId, field);
  }
  return errors;
}
