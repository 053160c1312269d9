import { FieldErrors } from "../../field-errors.ts";

const levels = ["privileged", "baseline", "restricted"] as const;
export type Level = (typeof levels)[number];

/** How strict to be, and by which release's rules: a minor version, or all rules there are. */
export interface LevelVersion {
  level: Level;
  minor: number | "latest";
}

export const modes = ["enforce", "audit", "warn"] as const;
export type Policy = Record<(typeof modes)[number], LevelVersion>;

const prefix = "pod-security.kubernetes.io/";
const unrestricted: LevelVersion = { level: "privileged", minor: "latest" };
const nothing: Policy = { enforce: unrestricted, audit: unrestricted, warn: unrestricted };

/** Whether any label speaks of Pod Security: most namespaces have none. */
export function hasPolicy(labels: Record<string, string> | undefined): boolean {
  for (const key in labels) if (key.startsWith(prefix)) return true;
  return false;
}

/**
 * What a namespace's labels ask for (`k8s.io/pod-security-admission/api`), and what is wrong with them. A
 * level that is none counts as `restricted` when it is to be enforced, else as nothing.
 */
export function policyOf(labels: Record<string, string> | undefined): {
  policy: Policy;
  errors: FieldErrors;
} {
  const errors = new FieldErrors();
  if (!hasPolicy(labels)) return { policy: nothing, errors };
  const read = (mode: (typeof modes)[number]): LevelVersion => ({
    level: levelOf(labels?.[prefix + mode], prefix + mode, mode, errors),
    minor: minorOf(labels?.[`${prefix}${mode}-version`], `${prefix}${mode}-version`, errors),
  });
  const enforce = read("enforce");
  const audit = read("audit");
  const warn = read("warn");
  const isGiven = (key: string) => labels?.[prefix + key] !== undefined;
  // Who is refused Pods is to hear of it where their templates are written, too.
  const isLevel = levels.includes(labels?.[`${prefix}enforce`] as Level);
  if (!isGiven("warn") && isLevel && strictness(enforce.level) > strictness(warn.level)) {
    warn.level = enforce.level;
    if (!isGiven("warn-version")) warn.minor = enforce.minor;
  }
  return { policy: { enforce, audit, warn }, errors };
}

function levelOf(
  text: string | undefined,
  label: string,
  mode: string,
  errors: FieldErrors,
): Level {
  if (text === undefined) return "privileged";
  if (levels.includes(text as Level)) return text as Level;
  errors.invalid(`metadata.labels[${label}]`, text, `must be one of ${levels.join(", ")}`);
  return mode === "enforce" ? "restricted" : "privileged";
}

function minorOf(text: string | undefined, label: string, errors: FieldErrors): number | "latest" {
  if (text === undefined || text === "latest") return "latest";
  const match = /^v1\.(\d|[1-9]\d{0,3})$/.exec(text);
  if (match) return Number(match[1]);
  errors.invalid(`metadata.labels[${label}]`, text, 'must be "latest" or "v1.x"');
  return "latest";
}

export function strictness(level: Level): number {
  return levels.indexOf(level);
}

export function sameLevel(a: LevelVersion, b: LevelVersion): boolean {
  return a.level === b.level && a.minor === b.minor;
}

/** `restricted:v1.30`, as messages have it. */
export function printed({ level, minor }: LevelVersion): string {
  return `${level}:${minor === "latest" ? minor : `v1.${minor}`}`;
}
