import { type Configuration, type Liveness } from "@spry/controller";
import { type LeveledLogger } from "./logger.ts";

/** What the served Serverless object says to the process itself, on both engines, while it runs. */
export function useConfiguration(
  { logLevel, logFormat, livenessTimeoutMs }: Configuration,
  { log, liveness }: { log: LeveledLogger; liveness: Liveness },
): void {
  // The contract's names for levels (docs/compatibility.md#serverless-object); some mean the same.
  const isFatal = logLevel === "panic" || logLevel === "dpanic";
  log.setLevel(isFatal ? "fatal" : logLevel);
  log.setFormat(logFormat);
  liveness.timeoutMs = livenessTimeoutMs;
}
