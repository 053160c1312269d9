/** Conditions on attributes, all of which must hold; in the form of CloudEvents Subscriptions, section 3.2.4. */
export type Filter = readonly Condition[];

export type Condition =
  | { exact: Readonly<Record<string, string>> }
  | { prefix: Readonly<Record<string, string>> }
  | { suffix: Readonly<Record<string, string>> }
  | { all: readonly Condition[] }
  | { any: readonly Condition[] }
  | { not: Condition };

/** Whether attributes fulfil every condition. One that is missing fulfils none that names it. */
export function matches(
  filter: Filter | undefined,
  attributes: Readonly<Record<string, string>>,
): boolean {
  return filter === undefined || filter.every((condition) => holds(condition, attributes));
}

/** Its own one: names are chosen by tenants, and every object has a `constructor`. */
export function attributeOf(
  attributes: Readonly<Record<string, unknown>>,
  name: string,
): string | undefined {
  const value = Object.hasOwn(attributes, name) ? attributes[name] : undefined;
  return typeof value === "string" ? value : undefined;
}

function holds(condition: Condition, attributes: Readonly<Record<string, string>>): boolean {
  const each = (
    wanted: Readonly<Record<string, string>>,
    test: (value: string, text: string) => boolean,
  ) =>
    Object.entries(wanted).every(([name, text]) => {
      const value = attributeOf(attributes, name);
      return value !== undefined && test(value, text);
    });
  if ("exact" in condition) return each(condition.exact, (value, text) => value === text);
  if ("prefix" in condition) return each(condition.prefix, (value, text) => value.startsWith(text));
  if ("suffix" in condition) return each(condition.suffix, (value, text) => value.endsWith(text));
  if ("all" in condition) return condition.all.every((one) => holds(one, attributes));
  if ("any" in condition) return condition.any.some((one) => holds(one, attributes));
  return !holds(condition.not, attributes);
}
