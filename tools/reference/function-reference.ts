/** docs/function-reference.md, from the CustomResourceDefinition. */
import { functionCrd, presets } from "@spry/function";
import { code, generatedFrom, item, paragraph } from "./markdown.ts";

interface Field {
  type?: string;
  description?: string;
  properties?: Record<string, Field>;
  items?: Field;
  required?: string[];
  enum?: unknown[];
  default?: unknown;
  minimum?: number;
  maximum?: number;
  maxItems?: number;
  maxLength?: number;
  maxProperties?: number;
  additionalProperties?: Field;
  "x-kubernetes-validations"?: { message: string }[];
}

/** Where Kubernetes' own kinds begin: its reference describes them. */
const ofKubernetes = new Set([
  "env",
  "resources",
  "podSecurityContext",
  "containerSecurityContext",
  "metadata",
]);

export function functionReference(): string {
  const [version] = functionCrd().spec.versions;
  const schema = version?.schema?.openAPIV3Schema as unknown as Field;
  const { spec, status } = schema.properties ?? {};
  return `${[
    generatedFrom("the CustomResourceDefinition (packages/function)"),
    "# Function reference",
    paragraph(
      "Every field of a Function (`serverless.kyma-project.io/v1alpha2`). `kubectl explain function.spec` shows the same. " +
        "Only `metadata.name`, `spec.source` and what is marked as required there must be set. " +
        "[compatibility.md](compatibility.md) says which fields the original has, and which are ours.",
    ),
    "## spec",
    fieldsOf(spec, "spec").join("\n"),
    "## Profiles",
    paragraph(
      "Names for `resourceConfiguration.function.profile` and `resourceConfiguration.build.profile`. Without one a Function has " +
        "the default of its cluster: L and normal, on one or two nodes XS and slow.",
    ),
    presetTable("function"),
    presetTable("build"),
    "## status",
    fieldsOf(status, "status").join("\n"),
  ].join("\n\n")}\n`;
}

function fieldsOf(field: Field | undefined, path: string, depth = 0): string[] {
  return Object.entries(field?.properties ?? {}).flatMap(([name, each]) => {
    const inner = each.items ?? each;
    const isKubernetes = ofKubernetes.has(name);
    const lines = [
      item(
        code(name),
        sentences(each, field?.required?.includes(name) ?? false, isKubernetes),
        depth,
      ),
    ];
    return isKubernetes
      ? lines
      : [...lines, ...fieldsOf(inner, `${path}.${name}${each.items ? "[]" : ""}`, depth + 1)];
  });
}

function sentences(field: Field, isRequired: boolean, isKubernetes: boolean): string {
  const { description = "", minimum, maximum, maxItems, maxLength, maxProperties } = field;
  const bounds = [
    minimum !== undefined && maximum !== undefined
      ? `${minimum} to ${maximum}`
      : minimum !== undefined && `at least ${minimum}`,
    maxItems !== undefined && `at most ${maxItems} of them`,
    maxLength !== undefined && `at most ${maxLength} characters`,
    maxProperties !== undefined && `at most ${maxProperties} of them`,
    field.default !== undefined && `default ${JSON.stringify(field.default)}`,
    field.enum && `one of ${field.enum.map((each) => code(String(each))).join(", ")}`,
  ].filter((each) => typeof each === "string");
  const rules = (field["x-kubernetes-validations"] ?? []).map(({ message }) => code(message));
  return [
    `${typeOf(field)}${isRequired ? ", required" : ""}.`,
    description,
    isKubernetes ? "As in Kubernetes." : "",
    bounds.length > 0
      ? `${bounds.join(", ")}.`.replace(/^./, (letter) => letter.toUpperCase())
      : "",
    rules.length > 0 ? `Refused otherwise: ${rules.join("; ")}.` : "",
  ]
    .filter(Boolean)
    .join(" ");
}

function typeOf({ type, items, additionalProperties }: Field): string {
  if (items) return `list of ${items.type === "object" ? "objects" : `${items.type}s`}`;
  if (additionalProperties) return "map of texts";
  return type === "string" ? "text" : (type ?? "object");
}

function presetTable(kind: keyof typeof presets): string {
  const rows = Object.entries(presets[kind]).map(([name, { requests, limits }]) => {
    const { cpu, memory } = requests as Record<string, string>;
    const most = limits as Record<string, string>;
    return `| ${kind} ${code(name)} | ${cpu} | ${memory} | ${most["cpu"]} | ${most["memory"]} |`;
  });
  const header = "| profile | CPU requested | memory requested | CPU limit | memory limit |";
  return [header, "|---|---|---|---|---|", ...rows].join("\n");
}
