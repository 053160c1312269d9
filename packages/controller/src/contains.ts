import { compareQuantities } from "@spry/kube";

/**
 * Whether everything that is desired is there as desired. What an API server adds (defaults,
 * status) does not count, nor does what it leaves out because it is empty, nor how it writes an
 * amount (1024Mi, 1Gi).
 */
export function contains(observed: unknown, desired: unknown): boolean {
  if (observed === desired || desired === undefined) return true;
  if (observed === undefined || observed === null) return isEmpty(desired);
  if (Array.isArray(desired)) {
    if (!Array.isArray(observed) || observed.length !== desired.length) return false;
    return desired.every((item, index) => contains(observed[index], item));
  }
  if (typeof desired === "object" && desired !== null) {
    if (typeof observed !== "object") return false;
    const fields = observed as Record<string, unknown>;
    return Object.entries(desired).every(([key, value]) => contains(fields[key], value));
  }
  return sameAmount(observed, desired);
}

function isEmpty(value: unknown): boolean {
  if (value === "" || value === false || value === null) return true;
  return typeof value === "object" && Object.values(value).every(isEmpty);
}

function sameAmount(a: unknown, b: unknown): boolean {
  if (!isScalar(a) || !isScalar(b)) return false;
  try {
    return compareQuantities(a, b) === 0;
  } catch {
    return false;
  }
}

const isScalar = (value: unknown): value is string | number =>
  typeof value === "string" || typeof value === "number";
