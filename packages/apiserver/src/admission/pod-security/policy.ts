import { FieldErrors } from "../../field-errors.ts";

/** From the weakest to the strictest. */
export const podSecurityLevels = ["privileged", "baseline", "restricted"] as const;
const levels = podSecurityLevels;
export type PodSecurityLevel = (typeof podSecurityLevels)[number];

/** How strict to be, and by which release's rules: a minor version, or all rules there are. */
export interface LevelVersion {
  level: PodSecurityLevel;
  minor: number | "latest";
}

export const modes = ["enforce", "audit", "warn"] as const;
export type Policy = Record<(typeof modes)[number], LevelVersion>;

const prefix = "pod-security.kubernetes.io/";

/** The same level for all modes, by all rules of this release. */
export function policyOfLevel(level: PodSecurityLevel): Policy {
  const one: LevelVersion = { level, minor: "latest" };
  return { enforce: one, audit: one, warn: one };
}

/** Whether any label speaks of Pod Security: most namespaces have none. */
function hasPolicy(labels: Record<string, string> | undefined): boolean {
  for (const key in labels) if (key.startsWith(prefix)) return true;
  return false;
}

/**
 * What a namespace's labels ask for (`k8s.io/pod-security-admission/api`), with the default for each label that is
 * missing, and what is wrong with them. An unknown level counts as `restricted` when it is to be enforced, otherwise as
 * `privileged`.
 */
export function policyOf(
  labels: Record<string, string> | undefined,
  defaults: Policy,
): { policy: Policy; errors: FieldErrors } {
  const errors = new FieldErrors();
  if (!hasPolicy(labels)) return { policy: defaults, errors };
  const read = (mode: (typeof modes)[number]): LevelVersion => {
    const [level, version] = [prefix + mode, `${prefix}${mode}-version`];
    const { [level]: givenLevel, [version]: givenVersion } = labels ?? {};
    return {
      level:
        givenLevel === undefined ? defaults[mode].level : levelOf(givenLevel, level, mode, errors),
      minor:
        givenVersion === undefined ? defaults[mode].minor : minorOf(givenVersion, version, errors),
    };
  };
  const enforce = read("enforce");
  const audit = read("audit");
  const warn = read("warn");
  const isGiven = (key: string) => labels?.[prefix + key] !== undefined;
  // Who is refused Pods is to hear of it where their templates are written, too.
  const isLevel = levels.includes(labels?.[`${prefix}enforce`] as PodSecurityLevel);
  if (!isGiven("warn") && isLevel && strictness(enforce.level) > strictness(warn.level)) {
    warn.level = enforce.level;
    if (!isGiven("warn-version")) warn.minor = enforce.minor;
  }
  return { policy: { enforce, audit, warn }, errors };
}

function levelOf(text: string, label: string, mode: string, errors: FieldErrors): PodSecurityLevel {
  if (levels.includes(text as PodSecurityLevel)) return text as PodSecurityLevel;
  errors.invalid(`metadata.labels[${label}]`, text, `must be one of ${levels.join(", ")}`);
  return mode === "enforce" ? "restricted" : "privileged";
}

function minorOf(text: string, label: string, errors: FieldErrors): number | "latest" {
  if (text === "latest") return "latest";
  const match = /^v1\.(\d|[1-9]\d{0,3})$/.exec(text);
  if (match) return Number(match[1]);
  errors.invalid(`metadata.labels[${label}]`, text, 'must be "latest" or "v1.x"');
  return "latest";
}

export function strictness(level: PodSecurityLevel): number {
  return levels.indexOf(level);
}

export function sameLevel(a: LevelVersion, b: LevelVersion): boolean {
  return a.level === b.level && a.minor === b.minor;
}

/** `restricted:v1.30`, as messages have it. */
export function printed({ level, minor }: LevelVersion): string {
  return `${level}:${minor === "latest" ? minor : `v1.${minor}`}`;
}
