import { type Library } from "./library.ts";

/** A version as rules see it (`library/semverlib.go`; semver.org 2.0.0). */
class CelSemver {
  readonly numbers: [bigint, bigint, bigint];
  readonly prerelease: string[];
  constructor(numbers: [bigint, bigint, bigint], prerelease: string[]) {
    this.numbers = numbers;
    this.prerelease = prerelease;
  }
}

const pattern =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*))*))?(?:\+[\dA-Za-z-]+(?:\.[\dA-Za-z-]+)*)?$/;

/** As `semver.ParseTolerant`: a leading v, missing numbers, leading zeros. */
function normalised(text: string): string {
  const trimmed = text.trim().replace(/^v/, "");
  const end = trimmed.search(/[-+]/);
  const main = end < 0 ? trimmed : trimmed.slice(0, end);
  const numbers = main.split(".").map((each) => each.replace(/^0+(?=\d)/, ""));
  // A version that is short has nothing after its numbers.
  if (numbers.length < 3 && end >= 0) return text;
  while (numbers.length < 3) numbers.push("0");
  return numbers.join(".") + (end < 0 ? "" : trimmed.slice(end));
}

function parsed(text: string, normalise = false): CelSemver {
  const match = pattern.exec(normalise ? normalised(text) : text);
  if (!match) throw new Error(`No Major.Minor.Patch elements found in ${JSON.stringify(text)}`);
  const [, major = "0", minor = "0", patch = "0", prerelease] = match;
  return new CelSemver([BigInt(major), BigInt(minor), BigInt(patch)], prerelease?.split(".") ?? []);
}

function isSemver(text: string, normalise = false): boolean {
  try {
    parsed(text, normalise);
    return true;
  } catch {
    return false;
  }
}

function compared(a: CelSemver, b: CelSemver): bigint {
  for (const [index, number] of a.numbers.entries()) {
    const other = b.numbers[index] ?? 0n;
    if (number !== other) return number < other ? -1n : 1n;
  }
  // What is not released yet comes before what is.
  if (a.prerelease.length === 0 || b.prerelease.length === 0)
    return BigInt(Math.sign(b.prerelease.length - a.prerelease.length));
  for (const [index, part] of a.prerelease.entries()) {
    const other = b.prerelease[index];
    if (other === undefined) return 1n;
    if (part !== other) return comparedParts(part, other);
  }
  return a.prerelease.length < b.prerelease.length ? -1n : 0n;
}

function comparedParts(a: string, b: string): bigint {
  const isNumber = (text: string) => /^\d+$/.test(text);
  if (isNumber(a) && isNumber(b)) return BigInt(a) < BigInt(b) ? -1n : 1n;
  if (isNumber(a) !== isNumber(b)) return isNumber(a) ? -1n : 1n;
  return a < b ? -1n : 1n;
}

export const semver: Library = {
  types: { "kubernetes.Semver": CelSemver },
  functions: [
    ["semver(string): kubernetes.Semver", (text: string) => parsed(text)],
    ["semver(string, bool): kubernetes.Semver", parsed],
    ["isSemver(string): bool", (text: string) => isSemver(text)],
    ["isSemver(string, bool): bool", isSemver],
    [
      "kubernetes.Semver.isGreaterThan(kubernetes.Semver): bool",
      (a: CelSemver, b: CelSemver) => compared(a, b) > 0n,
    ],
    [
      "kubernetes.Semver.isLessThan(kubernetes.Semver): bool",
      (a: CelSemver, b: CelSemver) => compared(a, b) < 0n,
    ],
    ["kubernetes.Semver.compareTo(kubernetes.Semver): int", compared],
    ["kubernetes.Semver.major(): int", ({ numbers }: CelSemver) => numbers[0]],
    ["kubernetes.Semver.minor(): int", ({ numbers }: CelSemver) => numbers[1]],
    ["kubernetes.Semver.patch(): int", ({ numbers }: CelSemver) => numbers[2]],
  ],
  operators: [
    [
      "kubernetes.Semver == kubernetes.Semver",
      (a: CelSemver, b: CelSemver) => compared(a, b) === 0n,
    ],
  ],
};
