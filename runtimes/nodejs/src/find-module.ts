import { existsSync, readFileSync, statSync } from "node:fs";
import { LoadError } from "./load-error.ts";
import { type StartCommand, startCommandOf } from "./start-script.ts";

/** Of the last two only `spry dev` and `spry deploy` make something that Node.js runs. */
const extensions = ["js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "jsx"];

/** The file with a Function's code. */
export interface ModuleFile {
  path: string;
  /** package.json says that its files are ES modules. */
  isModulePackage: boolean;
  /** What starts this very file, when npm does it. */
  start?: StartCommand | undefined;
}

/**
 * The contract's `handler.js` comes before `main` of package.json, which `npm init` fills in unasked. Then
 * comes `index.js`, as for Node.js itself: the neighbours' Functions are called so; those of AWS Lambda's
 * templates `app.js`; then where the build of func's TypeScript puts it; and last what `npm start` runs.
 */
export function findModule(directory: string, moduleName: string): ModuleFile {
  const { main, type, start } = readPackageJson(directory);
  const filesOf = (name: string) => extensions.map((extension) => `${name}.${extension}`);
  const own = [...filesOf(moduleName), ...(main === undefined ? [] : [main])];
  const candidates = [...own, ...filesOf("index"), ...filesOf("app"), "build/index.js"];
  const started = start ? startedFiles(start, main) : ["server.js"];
  // Not by `join`: what it costs for each would make V8 load its compiler for it, 2 MB of the process.
  const pathOf = (names: string[]) =>
    names.map((name) => `${directory}/${name}`).find((file) => isFile(file));
  const path = pathOf(candidates) ?? pathOf(started);
  if (path !== undefined) {
    const isStarted = start !== undefined && pathOf(started) === path;
    return { path, isModulePackage: type === "module", start: isStarted ? start : undefined };
  }
  const others = [...own.slice(1), "index.js", "app.js"].join(", ");
  throw new LoadError(`loading the Function: it has neither ${moduleName}.js nor ${others}`);
}

/** As `node` finds it: by its name, with an extension, or as a folder. */
function startedFiles({ file }: StartCommand, main: string | undefined): string[] {
  if (file === undefined) return main === undefined ? ["index.js"] : [main];
  const name = file.replace(/^(?:\.\/)+/, "");
  if (name.startsWith("/") || name.split("/").includes("..")) return [];
  return [
    name,
    `${name}.js`,
    ...extensions.slice(1).map((each) => `${name}.${each}`),
    `${name}/index.js`,
  ];
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

interface PackageJson {
  main?: string | undefined;
  type?: string | undefined;
  start?: StartCommand | undefined;
}

function readPackageJson(directory: string): PackageJson {
  const file = `${directory}/package.json`;
  if (!existsSync(file)) return {};
  try {
    const { main, type, scripts } = JSON.parse(readFileSync(file, "utf8")) as Record<
      string,
      unknown
    >;
    return {
      start: startCommandOf(scripts),
      main: typeof main === "string" ? main : undefined,
      type: typeof type === "string" ? type : undefined,
    };
  } catch (cause) {
    throw new LoadError(`loading package.json: ${(cause as Error).message}`, { cause });
  }
}
