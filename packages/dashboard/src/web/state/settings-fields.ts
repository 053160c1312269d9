/** The settings of the platform (docs/compatibility.md#serverless-object): what the form has, and what the YAML explains. */
import { presets } from "@spry/function/browser";

export interface SettingField {
  /** In the spec; after a dot, a field within it. */
  path: string;
  title: string;
  hint: string;
  /** Where a value is one of a few. */
  choices?: readonly string[];
  /** Of what is in effect, in the status, where it has another name. */
  status?: string;
}

/** The usual ones, in the order of the form. */
export const usualFields: readonly SettingField[] = [
  {
    path: "defaultRuntimePodPreset",
    title: "Size of Functions",
    hint: "CPU and memory of Functions that choose none",
    choices: Object.keys(presets.function),
  },
  {
    path: "defaultBuildJobPreset",
    title: "Size of builds",
    hint: "CPU and memory of builds",
    choices: Object.keys(presets.build),
  },
  {
    path: "functionBuildMaxSimultaneousJobs",
    title: "Builds at once",
    hint: "1 to 1000; others wait",
  },
  {
    path: "targetCPUUtilizationPercentage",
    title: "CPU at which Functions scale",
    hint: "1 to 100, in percent of what they request",
  },
  {
    path: "functionRequeueDuration",
    title: "Time between looks at Git",
    hint: "a duration such as 5m",
  },
  {
    path: "functionHistoryLimit",
    title: "Versions kept of each Function",
    hint: "1 to 100",
  },
  {
    path: "tracing.endpoint",
    title: "Collector of traces",
    hint: "the URL of an OTLP endpoint",
    status: "tracingEndpoint",
  },
  {
    path: "eventing.endpoint",
    title: "Publisher of events",
    hint: "the URL to which Functions publish",
    status: "eventingEndpoint",
  },
  {
    path: "logLevel",
    title: "Level of the controller’s log",
    hint: "what is less important is left out",
    choices: ["fatal", "panic", "dpanic", "error", "warn", "info", "debug"],
  },
  {
    path: "logFormat",
    title: "Format of the controller’s log",
    hint: "console is for people",
    choices: ["json", "console"],
  },
];

/** In the YAML only. */
export const otherFields: readonly (Pick<SettingField, "path" | "hint"> & { example: string })[] = [
  {
    path: "dockerRegistry",
    hint: "the registry of the images, by a Secret with its address and login",
    example: "{ enableInternal: true, secretName: my-registry }",
  },
  {
    path: "defaultScaleConfig",
    hint: "of new Functions that have none; minReplicas 0 serves them on demand",
    example: "{ minReplicas: 1, maxReplicas: 3 }",
  },
  {
    path: "gitAllowedAddresses",
    hint: "hosts and networks of Git servers at the platform’s own addresses",
    example: "[git.internal.example.com, 10.1.0.0/16]",
  },
  {
    path: "healthzLivenessTimeout",
    hint: "how long a liveness check may wait",
    example: "10s",
  },
  {
    path: "functionBuildExecutorArgs",
    hint: "arguments of the image builder",
    example: '"--insecure-registry=registry.example.com"',
  },
  {
    path: "eventing.nats",
    hint: "NATS servers of your own, in a cluster",
    example: "{ servers: [nats://nats.example.com:4222], replicas: 3 }",
  },
];

type Fields = Record<string, unknown>;
const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/** Empty where it is not set. */
export function valueAt(spec: object, path: string): string {
  const [first = "", second] = path.split(".");
  const value = (spec as Fields)[first];
  const found = second === undefined ? value : fieldsOf(value)[second];
  return typeof found === "string" || typeof found === "number" ? String(found) : "";
}

/** As the status says it; empty where it says nothing. */
export const fieldsInEffect = (
  status: object,
  { path, status: name = path }: SettingField,
): string => valueAt(status, name);

/** Without the field where the text is empty. */
export function withValueAt(spec: object, path: string, text: string): object {
  const [first = "", second] = path.split(".");
  const value = text === "" ? undefined : text;
  if (second === undefined) return without({ ...spec, [first]: value }, first);
  const inner = without({ ...fieldsOf((spec as Fields)[first]), [second]: value }, second);
  const isEmpty = Object.keys(inner).length === 0;
  return without({ ...spec, [first]: isEmpty ? undefined : inner }, first);
}

function without(fields: Fields, name: string): Fields {
  if (fields[name] !== undefined) return fields;
  const { [name]: _none, ...rest } = fields;
  return rest;
}
