/** Checks a value against the few keywords of JSON schema that `configSchema` uses, with messages for people. */

interface Schema {
  type?: string | readonly string[];
  enum?: readonly string[];
  pattern?: string;
  maxLength?: number;
  minimum?: number;
  required?: readonly string[];
  properties?: Readonly<Record<string, Schema>>;
  additionalProperties?: boolean | Schema;
  propertyNames?: Schema;
  minProperties?: number;
  maxProperties?: number;
  items?: Schema;
  anyOf?: readonly Schema[];
}

/** What is wrong with a value, where, and how to fix it. */
export interface ValueProblem {
  path: (string | number)[];
  message: string;
  wayOut?: string;
}

/** Of an object, for a user who has written a list. */
const formOf = (key: string | number | undefined): string =>
  key === undefined || typeof key === "number"
    ? "write its keys without hyphens, as in `name: value`"
    : `write it without hyphens, as in \`${key}: { NAME: value }\``;

const nameWayOut = "use lower-case letters, digits and hyphens, with a letter first";

/** The first problem; undefined for a value that fits. */
export function checkValue(
  schema: Schema,
  value: unknown,
  path: (string | number)[] = [],
): ValueProblem | undefined {
  const problem = (message: string, wayOut?: string): ValueProblem => ({
    path,
    message,
    ...(wayOut !== undefined && { wayOut }),
  });
  if (schema.anyOf) return checkAny(schema.anyOf, value, path);
  if (schema.enum && !(typeof value === "string" && schema.enum.includes(value)))
    return problem(`is ${shown(value)}`, `use one of ${schema.enum.join(", ")}`);
  if (schema.type && !typesOf(value).some((type) => [schema.type].flat().includes(type)))
    return problem(
      `must be ${articled([schema.type].flat().join(" or "))}, not ${shown(value)}`,
      schema.type === "object" && Array.isArray(value) ? formOf(path.at(-1)) : undefined,
    );
  if (typeof value === "string") {
    if (schema.maxLength !== undefined && value.length > schema.maxLength)
      return problem(`must have at most ${schema.maxLength} characters`);
    if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(value))
      return problem(`is ${shown(value)}`, nameWayOut);
  }
  if (typeof value === "number" && schema.minimum !== undefined && value < schema.minimum)
    return problem(`must be at least ${schema.minimum}, not ${value}`);
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const wrong = schema.items && checkValue(schema.items, item, [...path, index]);
      if (wrong) return wrong;
    }
  } else if (typeof value === "object" && value !== null) {
    return checkKeys(schema, value as Record<string, unknown>, path);
  }
  return undefined;
}

function checkKeys(
  schema: Schema,
  value: Record<string, unknown>,
  path: (string | number)[],
): ValueProblem | undefined {
  const { properties = {}, additionalProperties = true } = schema;
  const { minProperties = 0, maxProperties = Infinity } = schema;
  const count = Object.keys(value).length;
  if (count < minProperties)
    return { path, message: "is empty", wayOut: "name something below it, or remove the key" };
  if (count > maxProperties)
    return { path, message: `has ${count} keys, at most ${maxProperties}` };
  for (const key of schema.required ?? [])
    if (!Object.hasOwn(value, key)) return { path, message: `needs the key ${key}` };
  for (const [key, item] of Object.entries(value)) {
    const at = [...path, key];
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (!known && additionalProperties === false)
      return {
        path: at,
        message: "is not a known key",
        wayOut: `use one of ${Object.keys(properties).join(", ")}`,
      };
    if (schema.propertyNames && checkValue(schema.propertyNames, key)) {
      const { maxLength } = schema.propertyNames;
      const wayOut = maxLength === undefined ? "use letters, digits and _" : nameWayOut;
      const limit =
        maxLength !== undefined && key.length > maxLength ? `; at most ${maxLength}` : "";
      return { path: at, message: "is not a valid name", wayOut: wayOut + limit };
    }
    const rule = known ?? (typeof additionalProperties === "object" ? additionalProperties : {});
    const wrong = checkValue(rule, item, at);
    if (wrong) return wrong;
  }
  return undefined;
}

/** An object that has the keys of one alternative is measured by that one. */
function checkAny(
  schemas: readonly Schema[],
  value: unknown,
  path: (string | number)[],
): ValueProblem | undefined {
  const problems = schemas.map((schema) => checkValue(schema, value, path));
  if (problems.includes(undefined)) return undefined;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return problems[0];
  const objects = schemas.filter(({ properties }) => properties);
  const meant = objects.find(
    ({ required = [] }) => required[0] !== undefined && required[0] in value,
  );
  if (meant) return checkValue(meant, value, path);
  const forms = objects.map(
    ({ required = [] }) => `{ ${required.map((key) => `${key}: …`).join(", ")} }`,
  );
  return { path, message: "is not a value", wayOut: `write text, or ${forms.join(" or ")}` };
}

function typesOf(value: unknown): string[] {
  if (value === null) return ["null"];
  if (Array.isArray(value)) return ["array"];
  if (Number.isInteger(value)) return ["integer", "number"];
  return [typeof value];
}

const articled = (type: string): string => (/^[aeio]/.test(type) ? `an ${type}` : `a ${type}`);

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? typeof value;
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
