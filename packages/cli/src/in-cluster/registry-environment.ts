/** The settings that the registry in a cluster gets from its Pod. */
import { quantityValue } from "@spry/kube";
import { UserError } from "../user-error.ts";
import { mapIn, textIn } from "./environment.ts";

export interface RegistryEnvironment {
  /** Where images are kept. */
  dir: string;
  /** What logins are signed with. */
  key: string;
  /** Bytes that may be stored; undefined when the size of the volume is not specified. */
  quotaBytes: number | undefined;
  /** By the names of `npm run images`: what builds start from is in use. */
  images: Readonly<Record<string, string>>;
  cleaning: RegistryCleaningSettings;
}

/** When the registry is cleaned, and what stays that nothing refers to. */
export interface RegistryCleaningSettings {
  /** Between two cleanings. */
  intervalSeconds: number;
  /** Images of each Function that are kept in addition to those in use. */
  previousImages: number;
  /** Dependency layers that no build has asked for in so long go. */
  cacheMaxAgeDays: number;
  /**
   * What was pushed or requested within this time stays: a push may be under way, or the cluster may not know of it
   * yet.
   */
  graceSeconds: number;
}

export const defaultCleaning: RegistryCleaningSettings = {
  intervalSeconds: 600,
  previousImages: 3,
  cacheMaxAgeDays: 30,
  graceSeconds: 1800,
};

const bounds: Record<keyof RegistryCleaningSettings, [min: number, max: number]> = {
  intervalSeconds: [1, 86_400],
  previousImages: [0, 1000],
  cacheMaxAgeDays: [0, 3650],
  graceSeconds: [1, 86_400],
};

/** Of the volume: what is on the way needs room too. */
const quotaShare = 0.9;

/** Throws a `UserError` that names the variable which is missing or wrong. */
export function registryEnvironment(env: NodeJS.ProcessEnv): RegistryEnvironment {
  const volume = env["REGISTRY_VOLUME_SIZE"];
  return {
    dir: env["REGISTRY_DIR"] ?? "/var/lib/registry",
    key: textIn(env, "REGISTRY_KEY", "a Secret has it"),
    quotaBytes: volume ? Math.floor(quantityValue(volume) * quotaShare) : undefined,
    images: mapIn(env, "SPRY_IMAGES"),
    cleaning: cleaningIn(env["REGISTRY_CLEANING"] || "{}"),
  };
}

function cleaningIn(text: string): RegistryCleaningSettings {
  const wayOut = "the Deployment sets it";
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    // Said below.
  }
  if (typeof given !== "object" || given === null)
    throw new UserError("REGISTRY_CLEANING is not a JSON object", wayOut);
  const settings = { ...defaultCleaning, ...given };
  const wrong = whatIsWrong(settings);
  if (wrong) throw new UserError(`REGISTRY_CLEANING: ${wrong}`, wayOut);
  return settings;
}

/** The first setting that cannot be, in a sentence; undefined when all can. */
export function whatIsWrong(settings: RegistryCleaningSettings): string | undefined {
  for (const [name, [min, max]] of Object.entries(bounds)) {
    const value: unknown = settings[name as keyof RegistryCleaningSettings];
    if (!Number.isInteger(value) || Number(value) < min || Number(value) > max)
      return `${name} is ${String(value)}, not a whole number from ${min} to ${max}`;
  }
  return undefined;
}
