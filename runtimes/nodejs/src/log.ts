import { inspect } from "node:util";

/** To stderr with stack and causes, as a person debugging the Function wants it. */
export function logError(what: string, error: unknown): void {
  const text = error instanceof Error ? inspect(error) : `threw ${inspect(error)}`;
  process.stderr.write(`${what}: ${text}\n`);
}
