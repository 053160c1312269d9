import { ConfigReader } from "./config-reader.ts";

/** Of `config-network` what does not ask for a networking layer of its own. */
export interface NetworkSettings {
  /** How long a change of the latest Revision takes, for Routes that do not say it themselves. Milliseconds. */
  rolloutMs: number;
}

export function networkSettings(data: Readonly<Record<string, string>> = {}): NetworkSettings {
  const read = new ConfigReader(data);
  const key = data["rollout-duration"] === undefined ? "rolloutDuration" : "rollout-duration";
  return { rolloutMs: read.integer(key, 0, { min: 0, max: 86_400 }) * 1000 };
}
