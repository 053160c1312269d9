import { isLabelKey, isLabelValue } from "@spry/kube/browser";
import { byteLength } from "./byte-length.ts";
import { specSchema } from "./crd.ts";
import { reservedEnvNames } from "./environment.ts";
import { type FieldError } from "./field-error.ts";
import { labelPrefix } from "./labels.ts";
import { defaultRuntime, findRuntime, retiredRuntimes, runtimes } from "./runtimes.ts";
import { type Function, type FunctionSpec } from "./types.ts";
import { validateResources } from "./validate-resources.ts";
import { validateSchedules } from "./validate-schedules.ts";
import { validateServing } from "./validate-serving.ts";
import { validateShape } from "./validate-shape.ts";
import { validateSource } from "./validate-source.ts";

const schema = specSchema();

/**
 * Everything that is wrong with a Function, in the order of its fields. What the schema cannot say
 * is here, and what it says once more, for places that have no schema: offline, and a cluster
 * without admission.
 */
export function validateFunction(fn: Function): FieldError[] {
  const { spec } = fn;
  if (spec === undefined) return [{ path: "spec", message: "spec is required" }];
  const misshapen = validateShape(schema, spec, "spec");
  if (misshapen.length > 0) return [...validateName(fn.metadata.name), ...misshapen];
  return [
    ...validateName(fn.metadata.name),
    ...validateRuntime(spec.runtime ?? defaultRuntime),
    ...validateSource(spec),
    ...validateEnv(spec),
    ...validateResources(spec),
    ...validateScale(spec),
    ...validateServing(spec),
    ...validateSchedules(spec),
    ...validateTemplate(spec),
    ...validateSecretMounts(spec),
    ...validateLabels(spec),
    ...validateAnnotations(spec),
  ];
}

/** What is wrong with the types of a spec's fields: without such an error, its fields can be read. */
export const specShapeErrors = (spec: unknown): FieldError[] => validateShape(schema, spec, "spec");

const dns1035Label = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;

/** The Function's Service has its name, and a Service's name is a DNS-1035 label. */
function validateName(name: string | undefined): FieldError[] {
  if (name === undefined || (name.length <= 63 && dns1035Label.test(name))) return [];
  const message =
    `metadata.name: ${name}. Err: a DNS-1035 label must consist of at most 63 lower case alphanumeric ` +
    `characters or '-', start with an alphabetic character, and end with an alphanumeric character`;
  return [{ path: "metadata.name", message }];
}

function validateRuntime(name: string): FieldError[] {
  if (findRuntime(name)) return [];
  const successor = Object.hasOwn(retiredRuntimes, name) ? retiredRuntimes[name] : undefined;
  const way = successor
    ? `${name} is no longer supported, use ${successor}`
    : `cannot find runtime: ${name}, use one of ${runtimes.map((each) => each.name).join(", ")}`;
  return [{ path: "spec.runtime", message: `invalid runtime value: ${way}` }];
}

const envName = /^[-._a-zA-Z][-._a-zA-Z0-9]*$/;

function validateEnv({ env = [] }: FunctionSpec): FieldError[] {
  return env.flatMap(({ name }, index) => {
    const path = `spec.env[${index}].name`;
    if (reservedEnvNames.includes(name)) {
      return [
        { path, message: `spec.env: ${name}. Err: env name is reserved for the serverless domain` },
      ];
    }
    if (envName.test(name) && name !== "." && !name.startsWith("..")) return [];
    const message =
      `spec.env: ${name}. Err: a valid environment variable name must consist of alphabetic ` +
      `characters, digits, '_', '-', or '.', and must not start with a digit`;
    return [{ path, message }];
  });
}

function validateScale({ scaleConfig, replicas }: FunctionSpec): FieldError[] {
  const errors: FieldError[] = [];
  if (replicas !== undefined && replicas < 0) {
    errors.push({ path: "spec.replicas", message: "replicas should not be less than 0" });
  }
  if (!scaleConfig) return errors;
  const { minReplicas, maxReplicas } = scaleConfig;
  const least = { minReplicas: 0, maxReplicas: 1 };
  for (const [field, value] of Object.entries({ minReplicas, maxReplicas })) {
    const bound = least[field as keyof typeof least];
    if (value >= bound) continue;
    const message = `${field} should be at least ${bound}`;
    errors.push({ path: `spec.scaleConfig.${field}`, message });
  }
  if (minReplicas > maxReplicas) {
    const message = "minReplicas should be less than or equal maxReplicas";
    errors.push({ path: "spec.scaleConfig", message });
  }
  return errors;
}

function validateTemplate({ template }: FunctionSpec): FieldError[] {
  if (!template?.labels && !template?.annotations) return [];
  const message =
    "Not supported: Use spec.labels and spec.annotations to label and/or annotate Function's Pods.";
  return [{ path: "spec.template", message }];
}

const dns1123Subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

function validateSecretMounts({ secretMounts = [] }: FunctionSpec): FieldError[] {
  const errors: FieldError[] = [];
  const add = (path: string, problem: string) =>
    errors.push({ path, message: `invalid spec.secretMounts: [${problem}]` });
  for (const [index, { secretName, mountPath }] of secretMounts.entries()) {
    const path = `spec.secretMounts[${index}]`;
    if (!dns1123Subdomain.test(secretName) || secretName.length > 253) {
      add(
        `${path}.secretName`,
        `${secretName} is not a valid Secret name (lowercase letters, digits, '-' and '.')`,
      );
    }
    if (!mountPath || mountPath.includes(":")) {
      add(`${path}.mountPath`, "mountPath should not be empty or contain ':'");
    }
  }
  const names = new Set(secretMounts.map((mount) => mount.secretName));
  if (names.size < secretMounts.length) add("spec.secretMounts", "secretNames should be unique");
  const paths = new Set(secretMounts.map((mount) => mount.mountPath));
  if (paths.size < secretMounts.length) add("spec.secretMounts", "mountPaths should be unique");
  return errors;
}

const keyRule =
  "it must consist of at most 63 alphanumeric characters, '-', '_' or '.', and start and end with an " +
  "alphanumeric character; a DNS domain and '/' may come first";

function validateLabels({ labels = {} }: FunctionSpec): FieldError[] {
  return Object.entries(labels).flatMap(([key, value]) => {
    const path = `spec.labels[${key}]`;
    const errors = validateDomain("Labels", path, key);
    if (!isLabelKey(key)) {
      errors.push({ path, message: `spec.labels: ${key}. Err: not a valid label key: ${keyRule}` });
    }
    if (!isLabelValue(value)) {
      const message =
        `spec.labels: ${key}. Err: a valid label value must be empty or at most 63 alphanumeric characters, ` +
        `'-', '_' or '.', and must start and end with an alphanumeric character`;
      errors.push({ path, message });
    }
    return errors;
  });
}

/** The total that Kubernetes allows for an object's annotations. */
const maxAnnotationBytes = 256 * 1024;

function validateAnnotations({ annotations = {} }: FunctionSpec): FieldError[] {
  const errors = Object.keys(annotations).flatMap((key) => {
    const path = `spec.annotations[${key}]`;
    const valid = isLabelKey(key.toLowerCase());
    const message = `spec.annotations: ${key}. Err: not a valid annotation key: ${keyRule}`;
    return [...validateDomain("Annotations", path, key), ...(valid ? [] : [{ path, message }])];
  });
  const bytes = Object.entries(annotations)
    .flat()
    .reduce((sum, text) => sum + byteLength(text), 0);
  if (bytes > maxAnnotationBytes) {
    const message = `spec.annotations: ${bytes} bytes together, at most ${maxAnnotationBytes} are allowed`;
    errors.push({ path: "spec.annotations", message });
  }
  return errors;
}

function validateDomain(what: string, path: string, key: string): FieldError[] {
  if (!key.startsWith(labelPrefix)) return [];
  return [{ path, message: `${what} has key starting with ${labelPrefix} which is not allowed` }];
}
