/**
 * Header fields by lower-case name, found by a name in any case: events of format 1.0 have the client's case. It
 * stays a plain object, of which only missing fields cost anything to look up.
 */
export function inAnyCase(fields: Record<string, string>): Record<string, string> {
  const others = new Proxy(Object.prototype as Record<string | symbol, unknown>, {
    get(prototype, name) {
      if (typeof name === "symbol" || name in prototype) return prototype[name];
      const key = name.toLowerCase();
      return Object.hasOwn(fields, key) ? fields[key] : undefined;
    },
  });
  return Object.assign(Object.create(others) as Record<string, string>, fields);
}
