/**
 * Values from outside (objects, stored values, answers of a proxy) as views expect them. A view reads their fields without
 * asking: what does not fit is taken out here, so that it cannot throw there.
 */

/**
 * What a value must be like. In an object, `name!` is a field that is never missing: it is empty where it was not given; `*` stands
 * for all other fields, which otherwise stay as they are.
 */
export type Shape = "text" | "number" | "flag" | "any" | readonly [Shape] | ShapeFields;
interface ShapeFields {
  readonly [field: string]: Shape;
}

type Fields = Record<string, unknown>;

/** The value without everything that does not fit; undefined when nothing of it does. What fits as a whole is returned itself. */
export function fit(shape: Shape, value: unknown): unknown {
  if (shape === "any") return value;
  if (shape === "text") return typeof value === "string" ? value : undefined;
  if (shape === "number") return Number.isFinite(value) ? value : undefined;
  if (shape === "flag") return typeof value === "boolean" ? value : undefined;
  if (isList(shape)) return Array.isArray(value) ? listOf(shape[0], value) : undefined;
  return isFields(value) ? fieldsOf(shape, value) : undefined;
}

/** The same, with an empty value where nothing fits. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type that the shape describes
export const fitted = <T>(shape: Shape, value: unknown): T =>
  (fit(shape, value) ?? emptyOf(shape)) as T;

const isList = (shape: Shape): shape is readonly [Shape] => Array.isArray(shape);
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function listOf(shape: Shape, values: readonly unknown[]): readonly unknown[] {
  const found = values.map((value) => fit(shape, value)).filter((value) => value !== undefined);
  const isSame = found.length === values.length && found.every((each, at) => each === values[at]);
  return isSame ? values : found;
}

function fieldsOf(shape: ShapeFields, value: Fields): Fields {
  let result = value;
  const set = (name: string, next: unknown) => {
    if (result === value) result = { ...value };
    if (next === undefined) delete result[name];
    else result[name] = next;
  };
  for (const [key, child] of Object.entries(shape)) {
    if (key === "*") continue;
    const isRequired = key.endsWith("!");
    const name = isRequired ? key.slice(0, -1) : key;
    const before = Object.hasOwn(value, name) ? value[name] : undefined;
    const next = fit(child, before) ?? (isRequired ? emptyOf(child) : undefined);
    if (next !== before) set(name, next);
  }
  const others = shape["*"];
  if (others === undefined) return result;
  for (const [name, before] of Object.entries(value)) {
    if (Object.hasOwn(shape, name) || Object.hasOwn(shape, `${name}!`)) continue;
    const next = fit(others, before);
    if (next !== before) set(name, next);
  }
  return result;
}

function emptyOf(shape: Shape): unknown {
  if (shape === "any") return null;
  if (shape === "text") return "";
  if (shape === "number") return 0;
  if (shape === "flag") return false;
  return isList(shape) ? [] : fieldsOf(shape, {});
}
