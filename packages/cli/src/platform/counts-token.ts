import { randomBytes } from "node:crypto";
import path from "node:path";
import { readFileSync } from "node:fs";
import { writeAtomically } from "./data-dir.ts";

/** In the environment of the gateway's process: the file with the token. */
export const countsTokenVariable = "SPRY_COUNTS_TOKEN_FILE";

export interface CountsToken {
  file: string;
  token: string;
}

export const countsTokenFile = (dataDir: string): string => path.join(dataDir, "counts-token");

/** What the scaler shows to the gateway: a file of the platform's own, made once. */
export function ensureCountsToken(dataDir: string): CountsToken {
  const file = countsTokenFile(dataDir);
  const known = readCountsToken(file);
  if (known) return { file, token: known };
  const token = randomBytes(32).toString("hex");
  writeAtomically(file, token, 0o600);
  return { file, token };
}

/** Undefined when there is none, or something else. */
export function readCountsToken(file: string): string | undefined {
  try {
    const text = readFileSync(file, "utf8").trim();
    return /^[0-9a-f]{64}$/.test(text) ? text : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
