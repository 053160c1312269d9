/** Secrets of a data directory that programs of its owner show to the platform: files with mode 0600, each made once. */
import { randomBytes } from "node:crypto";
import path from "node:path";
import { readFileSync } from "node:fs";
import { writeAtomically } from "./data-dir.ts";

/** In the environment of the gateway's process: the files with the tokens of its counts and of its metrics. */
export const countsTokenVariable = "SPRY_COUNTS_TOKEN_FILE";
export const metricsTokenVariable = "SPRY_METRICS_TOKEN_FILE";

export interface TokenFile {
  file: string;
  token: string;
}

/** What the scaler shows to the gateway. */
export function ensureCountsToken(dataDir: string): TokenFile {
  return ensureToken(countsTokenFile(dataDir));
}

/** What scrapers show where they read `/metrics`: Pods may share the machine's network, and so reach these ports. */
export function ensureMetricsToken(dataDir: string): TokenFile {
  return ensureToken(metricsTokenFile(dataDir));
}

export const countsTokenFile = (dataDir: string): string => path.join(dataDir, "counts-token");
export const metricsTokenFile = (dataDir: string): string => path.join(dataDir, "metrics.token");

function ensureToken(file: string): TokenFile {
  const known = readToken(file);
  if (known) return { file, token: known };
  const token = randomBytes(32).toString("hex");
  writeAtomically(file, token, 0o600);
  return { file, token };
}

/** Undefined if the file does not exist, or does not hold a token. */
export function readToken(file: string): string | undefined {
  try {
    const text = readFileSync(file, "utf8").trim();
    return /^[0-9a-f]{64}$/.test(text) ? text : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
