import { ConfigReader, SettingsError } from "./config-reader.ts";

/** `config-gc` (knative.dev/serving/pkg/gc): which Revisions without a Route are deleted. Infinity switches a limit off. */
export interface GcSettings {
  sinceCreateMs: number;
  sinceActiveMs: number;
  minNonActive: number;
  maxNonActive: number;
}

export function gcSettings(data: Readonly<Record<string, string>> = {}): GcSettings {
  const read = new ConfigReader(data);
  const isOff = (key: string) => data[key]?.toLowerCase() === "disabled";
  const duration = (key: string, ms: number) => (isOff(key) ? Infinity : read.duration(key, ms));
  const settings = {
    sinceCreateMs: duration("retain-since-create-time", 48 * 3_600_000),
    sinceActiveMs: duration("retain-since-last-active-time", 15 * 3_600_000),
    minNonActive: read.integer("min-non-active-revisions", 20, { min: 0 }),
    maxNonActive: isOff("max-non-active-revisions")
      ? Infinity
      : read.integer("max-non-active-revisions", 1000, { min: 0 }),
  };
  if (settings.minNonActive > settings.maxNonActive)
    throw new SettingsError(
      `min-non-active-revisions(${settings.minNonActive}) must be <= max-non-active-revisions(${settings.maxNonActive})`,
    );
  return settings;
}
