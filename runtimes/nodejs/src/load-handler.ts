import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { eventHandler } from "./event-handler.ts";
import { type FunctionHandler, type UserFunction } from "./handler.ts";
import { type Publisher } from "./publisher.ts";
import { requestHandler } from "./request-handler.ts";
import { type Settings } from "./settings.ts";

const extensions = ["js", "mjs", "cjs", "ts", "mts", "cts"];

/** Thrown for a Function that cannot be loaded; its message is for the Function's author. */
export class LoadError extends Error {
  override readonly name = "LoadError";
}

/** Loads the Function's code and finds the function in it that answers requests. */
export async function loadHandler(
  directory: string,
  settings: Settings,
  publisher: Publisher,
): Promise<FunctionHandler> {
  const { moduleName, handlerName } = settings;
  const packageJson = readPackageJson(directory);
  const file = findModule(directory, moduleName, packageJson.main);
  const name = basename(file);
  let module: Record<string, unknown>;
  try {
    module = await loadModule(file, packageJson.type === "module");
  } catch (cause) {
    throw new LoadError(`loading ${name}: ${sentenceOf(cause)}`, { cause });
  }
  const handler = exportOf(module, handlerName);
  if (typeof handler === "function") {
    const main = handler as UserFunction;
    return settings.isRequestHandler
      ? requestHandler(main)
      : eventHandler(main, settings, publisher);
  }
  const found = Object.keys(module).filter((key) => key !== "module.exports");
  throw new LoadError(
    `loading ${name}: it exports no function ${handlerName}; ` +
      (found.length > 0 ? `there is ${found.join(", ")}` : "there are no exports at all"),
  );
}

interface PackageJson {
  main?: string | undefined;
  type?: string | undefined;
}

function readPackageJson(directory: string): PackageJson {
  const file = join(directory, "package.json");
  if (!existsSync(file)) return {};
  try {
    const { main, type } = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
    return {
      main: typeof main === "string" ? main : undefined,
      type: typeof type === "string" ? type : undefined,
    };
  } catch (cause) {
    throw new LoadError(`loading package.json: ${(cause as Error).message}`, { cause });
  }
}

/** The contract's `handler.js` comes before `main` of package.json, which `npm init` fills in unasked. */
function findModule(directory: string, moduleName: string, main: string | undefined): string {
  const candidates = extensions.map((extension) => `${moduleName}.${extension}`);
  if (main !== undefined) candidates.push(main);
  const found = candidates.map((name) => join(directory, name)).find((file) => existsSync(file));
  if (found !== undefined) return found;
  throw new LoadError(
    `loading the Function: there is no ${moduleName}.js, nor ${candidates.slice(1).join(", ")}`,
  );
}

/**
 * `require` where it can be: loading the machinery for `import()` costs several milliseconds of
 * every start. Recent Node.js requires ES modules too, except those with a top-level `await`.
 */
async function loadModule(
  file: string,
  isModulePackage: boolean,
): Promise<Record<string, unknown>> {
  const isModule = /\.m[jt]s$/.test(file) || (isModulePackage && /\.[jt]s$/.test(file));
  if (isModule) return (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  try {
    return createRequire(file)(file) as Record<string, unknown>;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ERR_REQUIRE_ESM" && code !== "ERR_REQUIRE_ASYNC_MODULE") throw error;
    return (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  }
}

/** `module.exports = { main }`, `export function main`, `export default { main }`. */
function exportOf(module: Record<string, unknown> | undefined, name: string): unknown {
  const own = module?.[name];
  if (own !== undefined) return own;
  const fallback = module?.["default"];
  return fallback !== null && typeof fallback === "object"
    ? (fallback as Record<string, unknown>)[name]
    : undefined;
}

/** The first line of what went wrong, without the list of files that `require` appends. */
function sentenceOf(cause: unknown): string {
  if (!(cause instanceof Error)) return `it threw ${String(cause)}`;
  const [message = ""] = cause.message.split("\n");
  return cause.name === "Error" ? message : `${cause.name}: ${message}`;
}
