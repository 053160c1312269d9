import { existsSync, readFileSync } from "node:fs";
import { LoadError } from "./load-error.ts";

/** Of the last two only `spry dev` and `spry deploy` make something that Node.js runs. */
const extensions = ["js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "jsx"];

/** The file with a Function's code. */
export interface ModuleFile {
  path: string;
  /** package.json says that its files are ES modules. */
  isModulePackage: boolean;
}

/**
 * The contract's `handler.js` comes before `main` of package.json, which `npm init` fills in unasked. Then
 * comes `index.js`, as for Node.js itself: the neighbours' Functions are called so; those of AWS Lambda's
 * templates `app.js`; and last where the build of func's TypeScript puts it.
 */
export function findModule(directory: string, moduleName: string): ModuleFile {
  const { main, type } = readPackageJson(directory);
  const filesOf = (name: string) => extensions.map((extension) => `${name}.${extension}`);
  const own = [...filesOf(moduleName), ...(main === undefined ? [] : [main])];
  const candidates = [...own, ...filesOf("index"), ...filesOf("app"), "build/index.js"];
  // Not by `join`: what it costs for each would make V8 load its compiler for it, 2 MB of the process.
  const path = candidates.map((name) => `${directory}/${name}`).find((file) => existsSync(file));
  if (path !== undefined) return { path, isModulePackage: type === "module" };
  const others = [...own.slice(1), "index.js", "app.js"].join(", ");
  throw new LoadError(`loading the Function: it has neither ${moduleName}.js nor ${others}`);
}

interface PackageJson {
  main?: string | undefined;
  type?: string | undefined;
}

function readPackageJson(directory: string): PackageJson {
  const file = `${directory}/package.json`;
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
