/** Applies what `npm start` would start the Function's file with: variables, modules that come first, and arguments. */
import { pathToFileURL } from "node:url";
import { importModule } from "./import-module.ts";
import { LoadError } from "./load-error.ts";
import { logLine } from "./log.ts";
import { type StartCommand } from "./start-script.ts";

/** What the platform sets where the user has not: the script's own values are the user's, too. */
const defaults: Record<string, string> = { PORT: "8080", NODE_ENV: "production" };

/** `directory`: of package.json. Throws a LoadError if a module cannot be loaded. */
export async function applyStart(start: StartCommand, directory: string): Promise<void> {
  const { variables, preloads, args, left } = start;
  for (const [name, value] of Object.entries(variables)) {
    const known = process.env[name];
    if (known === undefined || known === defaults[name]) process.env[name] = value;
  }
  process.argv.push(...args);
  for (const part of left)
    logLine(`package.json: ${JSON.stringify(part)} of the script start has no effect here`);
  for (const { option, name } of preloads) {
    try {
      const path = preloadPath(directory, name);
      if (option === "--require") require(path);
      else await importModule(pathToFileURL(path).href);
    } catch (cause) {
      const text = cause instanceof Error ? (cause.message.split("\n", 1)[0] ?? "") : String(cause);
      throw new LoadError(`loading ${name}, which package.json names by ${option}: ${text}`, {
        cause,
      });
    }
  }
}

/** The file that the module is for code in that directory. Throws if it does not exist. */
export function preloadPath(directory: string, name: string): string {
  const { createRequire } = process.getBuiltinModule("node:module");
  return createRequire(`${directory}/_`).resolve(name);
}
