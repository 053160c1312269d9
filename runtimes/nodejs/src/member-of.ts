/**
 * A member that an object says it has: a router that is a Proxy returns a function for whatever name it is asked for.
 */
export function memberOf(holder: object, name: string): unknown {
  return name in holder ? (holder as Record<string, unknown>)[name] : undefined;
}
