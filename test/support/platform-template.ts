import { cpSync, existsSync } from "node:fs";
import path from "node:path";
import { type StartOptions } from "./platform.ts";

/** Names, for the processes of tests, the folder in which a template is as soon as it is `complete`. */
export const templateVariable = "SPRY_TEST_TEMPLATE";
export const complete = "complete";

/**
 * Begins a platform's data directory with a copy of what a first start makes (keys, certificates, definitions, system
 * images, base objects), if there is a template and the options do not ask for a first start of its own. That takes as
 * much processor time as the rest of a start.
 */
export function useTemplate(dataDir: string, options: StartOptions): void {
  const folder = process.env[templateVariable];
  const { args = ["--no-example"], dataDir: chosen, isFirst, checkout, env, prefix, uid } = options;
  const isOrdinary = [chosen, isFirst, checkout, env, prefix, uid].every(
    (each) => each === undefined,
  );
  if (!folder || !isOrdinary) return;
  if (!args.includes("--no-example") || args.includes("--no-controller")) return;
  const template = path.join(folder, complete);
  if (existsSync(template)) cpSync(template, dataDir, { recursive: true });
}
