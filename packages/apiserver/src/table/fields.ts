import {
  formatLabelSelector,
  type LabelSelector,
  requirementsOf,
  type UnknownObject,
} from "@spry/kube";

/** Parts of objects as cells show them. */

export function spec(object: UnknownObject): Record<string, unknown> {
  return (object.spec ?? {}) as Record<string, unknown>;
}

export function status(object: UnknownObject): Record<string, unknown> {
  return (object.status ?? {}) as Record<string, unknown>;
}

export function text(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.join(",") || undefined;
  return value === undefined || value === null ? undefined : String(value);
}

export function sizeOf(value: unknown): number {
  return Object.keys(value ?? {}).length;
}

export function selectorText(selector: LabelSelector | undefined): string | undefined {
  return selector && (formatLabelSelector(requirementsOf(selector)) || undefined);
}

export function limited(values: string[], max: number): string | undefined {
  if (values.length === 0) return undefined;
  const shown = values.slice(0, max).join(",");
  return values.length > max ? `${shown} + ${values.length - max} more...` : shown;
}
