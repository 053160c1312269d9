import { type StatusCause, StatusError } from "@spry/kube";

/** One problem of a field; `reason` is the one in `Status.details.causes`. */
interface FieldError {
  field: string;
  reason: string;
  message: string;
}

/**
 * Collects what is wrong with an object, in the words of apimachinery's `field.Error`, so that all problems are
 * reported at once.
 */
export class FieldErrors {
  readonly all: FieldError[] = [];

  required(field: string, detail = ""): void {
    this.#add(field, "FieldValueRequired", `Required value${detail && `: ${detail}`}`);
  }
  invalid(field: string, value: unknown, detail: string): void {
    this.#add(field, "FieldValueInvalid", `Invalid value: ${shown(value)}: ${detail}`);
  }
  /** With the value quoted already. */
  quoted(field: string, value: string, detail: string): void {
    this.#add(field, "FieldValueInvalid", `Invalid value: ${value}: ${detail}`);
  }
  /** Without the value: only scalars are shown. */
  broken(field: string, detail: string): void {
    this.#add(field, "FieldValueInvalid", `Invalid value: ${detail}`);
  }
  typeInvalid(field: string, actual: string, detail: string): void {
    this.#add(field, "FieldValueTypeInvalid", `Invalid value: "${actual}": ${detail}`);
  }
  unsupported(field: string, value: unknown, supported: readonly unknown[]): void {
    const list = supported.map(shown).join(", ");
    this.#add(
      field,
      "FieldValueNotSupported",
      `Unsupported value: ${shown(value)}: supported values: ${list}`,
    );
  }
  duplicate(field: string, value: unknown): void {
    this.#add(field, "FieldValueDuplicate", `Duplicate value: ${shown(value)}`);
  }
  notFound(field: string, value: unknown): void {
    this.#add(field, "FieldValueNotFound", `Not found: ${shown(value)}`);
  }
  forbidden(field: string, detail: string): void {
    this.#add(field, "FieldValueForbidden", `Forbidden: ${detail}`);
  }
  tooLong(field: string, max: number): void {
    this.#add(field, "FieldValueTooLong", `Too long: may not be more than ${max} bytes`);
  }
  tooMany(field: string, count: number, max: number): void {
    this.#add(field, "FieldValueTooMany", `Too many: ${count}: must have at most ${max} items`);
  }

  /** All that was found, each once. */
  text(): string {
    const texts = [...new Set(this.all.map(({ field, message }) => `${field}: ${message}`))];
    return texts.length === 1 ? String(texts[0]) : `[${texts.join(", ")}]`;
  }

  /** Throws a `StatusError` 422 about the object when anything was found. */
  throwIfAny(kind: string, group: string, name: string): void {
    if (this.all.length === 0) return;
    const causes: StatusCause[] = this.all.map(({ reason, message, field }) => ({
      reason,
      message,
      field,
    }));
    throw new StatusError({
      code: 422,
      message: `${group ? `${kind}.${group}` : kind} "${name}" is invalid: ${this.text()}`,
      details: { ...(name && { name }), ...(group && { group }), ...(kind && { kind }), causes },
    });
  }

  #add(field: string, reason: string, message: string): void {
    if (this.all.length < maxErrors) this.all.push({ field, reason, message });
  }
}

/** More than a person reads; an answer stays of bounded size. */
const maxErrors = 100;

function shown(value: unknown): string {
  if (value === undefined || value === null) return "null";
  return JSON.stringify(value) ?? String(value);
}
