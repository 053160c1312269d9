import { createHash } from "node:crypto";

/** A digest of a JSON value that does not depend on the order of keys; 32 hex digits. */
export function digestOf(value: unknown): string {
  const text = JSON.stringify(value, (_, each: unknown) => (isMap(each) ? sorted(each) : each));
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function sorted(map: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.keys(map)
    .sort()
    .map((key) => [key, map[key]]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}
