import { compareQuantities, parseQuantity, type ResourceRequirements } from "@spry/kube/browser";
import { type PresetKind, presets } from "./presets.ts";
import { type FunctionSpec, type ResourceProfile } from "./types.ts";
import { type FieldError } from "./field-error.ts";

/** The least that makes sense; below it nothing would start. */
const floors = {
  function: { cpu: "10m", memory: "16Mi" },
  build: { cpu: "200m", memory: "200Mi" },
} as const;

export function validateResources({ resourceConfiguration }: FunctionSpec): FieldError[] {
  return (["function", "build"] as const).flatMap((kind) => {
    const asked = resourceConfiguration?.[kind];
    return asked ? validateProfile(kind, asked) : [];
  });
}

function validateProfile(kind: PresetKind, { profile, resources }: ResourceProfile): FieldError[] {
  const path = `spec.resourceConfiguration.${kind}`;
  if ((profile === undefined) === (resources === undefined)) {
    return [{ path, message: "Use profile or resources" }];
  }
  if (resources) return validateAmounts(kind, `${path}.resources`, resources);
  const known = Object.keys(presets[kind]);
  if (known.includes(profile ?? "")) return [];
  const message = `Invalid profile, please use one of: [${known.map((name) => `'${name}'`).join(",")}]`;
  return [{ path: `${path}.profile`, message }];
}

function validateAmounts(
  kind: PresetKind,
  path: string,
  resources: ResourceRequirements,
): FieldError[] {
  const errors: FieldError[] = [];
  const who = kind === "function" ? "Function" : "Build";
  for (const resource of ["cpu", "memory"] as const) {
    const floor = floors[kind][resource];
    const request = amountOf(resources.requests?.[resource], `${path}.requests.${resource}`);
    const limit = amountOf(resources.limits?.[resource], `${path}.limits.${resource}`);
    for (const { error } of [request, limit]) if (error) errors.push(error);
    const add = (at: string, message: string) =>
      errors.push({ path: `${path}.${at}.${resource}`, message: `${who} ${message}` });

    if (request.text && compareQuantities(request.text, floor) < 0) {
      const what = `request ${resource}(${request.text})`;
      add("requests", `${what} should be higher than minimal value (${floor})`);
    }
    if (limit.text && compareQuantities(limit.text, floor) < 0) {
      const what = `limits ${resource}(${limit.text})`;
      add("limits", `${what} should be higher than minimal value (${floor})`);
    }
    if (request.text && limit.text && compareQuantities(limit.text, request.text) < 0) {
      const what = `limits ${resource}(${limit.text})`;
      add("limits", `${what} should be higher than requests ${resource}(${request.text})`);
    }
  }
  return errors;
}

function amountOf(
  value: string | number | undefined,
  path: string,
): { text?: string; error?: FieldError } {
  if (value === undefined) return {};
  try {
    parseQuantity(value);
    return { text: String(value) };
  } catch {
    return {
      error: { path, message: `${path}: ${String(value).slice(0, 64)} is not a valid quantity` },
    };
  }
}
