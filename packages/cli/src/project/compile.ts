/**
 * TypeScript that more has to be done to than taking its types out, and JSX: esbuild makes one file of the handler and all that it
 * imports from the directory. Everything else Node.js runs as it is.
 */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { type Plugin } from "esbuild";
import { decoratorMetadata } from "./decorator-metadata.ts";
import { type SourceEntry } from "./files.ts";
import { localImports, needsBundling } from "./local-imports.ts";
import { readPackageJson } from "./package-json.ts";
import { hasBuildScript, type Project } from "./project.ts";

/** What stands for the handler and the files that are in it. */
export interface CompiledCode {
  /** Relative; a runtime takes it before the handler's own file. */
  path: string;
  format: "module" | "commonjs";
  /** With a source map. */
  text: string;
  /** The files that it was made of, relative to the directory; one outside of it begins with `../`. */
  inputs: string[];
}

const typed = /(?<!\.d)\.[cm]?tsx?$/;
const withJsx = /\.[jt]sx$/;
const maxBytes = 10_000_000;
/** Whether it means so or is in a comment: a file that could have been run as it is may as well be compiled. */
const beyondTypes = [
  /\b(?:enum|namespace|module)\s+[\w$.]+\s*\{/,
  // A decorator, before or in a class.
  /(?:^|[\s(])@[A-Za-z_$][\w$.]*/m,
  // A property that is a parameter of the constructor.
  /\bconstructor\s*\([^)]*\b(?:public|private|protected|readonly)\s/,
  /\bimport\s+[\w$]+\s*=|\bexport\s*=/,
  // A file without its extension.
  /\b(?:from|import)\s*\(?\s*["']\.{1,2}(?:\/[^"']*)?(?<!\.[cm]?[jt]sx?|\.json|\.node|\.wasm)["']/,
];

/** Whether the code has to be compiled. Directories with a build script compile themselves. */
export function needsCompiling(project: Project, files: readonly SourceEntry[]): boolean {
  const { root, handler, runtime } = project;
  if (runtime.language !== "nodejs" || hasBuildScript(root)) return false;
  if (withJsx.test(handler)) return true;
  const sources = files.filter((file) => !file.link && typed.test(file.path));
  if (sources.reduce((sum, { size }) => sum + size, 0) > maxBytes) return false;
  const beyond = (file: string) => goesBeyondTypes({ path: file, file: path.join(root, file) });
  if (needsBundling(localImports(root, handler), readPackageJson(root)["type"], beyond))
    return true;
  if (!typed.test(handler)) return false;
  const settings = path.join(root, "tsconfig.json");
  if (existsSync(settings) && /"(?:paths|baseUrl|extends)"/.test(readFileSync(settings, "utf8")))
    return true;
  return sources.some(goesBeyondTypes);
}

/** Whether a file has more in it than types that can be taken out. */
export function goesBeyondTypes({ path: name, file }: Pick<SourceEntry, "path" | "file">): boolean {
  if (withJsx.test(name)) return true;
  if (!typed.test(name) || !existsSync(file)) return false;
  const text = readFileSync(file, "utf8");
  return beyondTypes.some((pattern) => pattern.test(text));
}

/** Compiles the handler. Throws esbuild's error, with the places of all mistakes. The caller ends esbuild after the last one. */
export async function compile(project: Project): Promise<CompiledCode> {
  const metadata = decoratorMetadata(project.root, project.handler);
  try {
    return await bundle(project, metadata ? [metadata.plugin] : []);
  } catch (error) {
    throw metadata?.problem() ?? error;
  } finally {
    metadata?.close();
  }
}

async function bundle(
  { root, handler, runtime }: Project,
  plugins: Plugin[],
): Promise<CompiledCode> {
  const { build } = await import("esbuild");
  const isModule = usesModules(root, handler);
  const output = handler.replace(/\.([cm]?)[jt]sx?$/, (_, kind: string) => `.${kind}js`);
  const { outputFiles, metafile } = await build({
    entryPoints: [path.join(root, handler)],
    absWorkingDir: root,
    outfile: path.join(root, output),
    bundle: true,
    write: false,
    metafile: true,
    platform: "node",
    target: `node${/\d+/.exec(runtime.interpreter)?.[0] ?? "22"}`,
    format: isModule ? "esm" : "cjs",
    packages: "external",
    sourcemap: "inline",
    sourcesContent: false,
    // Frameworks register classes by their names.
    keepNames: true,
    plugins,
    logLevel: "silent",
  });
  const text = outputFiles[0]?.text ?? "";
  const inputs = Object.keys(metafile.inputs);
  return { path: output, format: isModule ? "module" : "commonjs", text, inputs };
}

/** By which name the runtime finds compiled code; undefined where it does so by itself. */
export function moduleNameOf({ path: file }: CompiledCode): string | undefined {
  const name = file.replace(/\.\w+$/, "");
  return name === "handler" ? undefined : name;
}

/** As Node.js decides it for the handler's own file. */
function usesModules(root: string, handler: string): boolean {
  if (/\.m[jt]s$/.test(handler)) return true;
  if (/\.c[jt]s$/.test(handler)) return false;
  const { type } = readPackageJson(root);
  if (type === "module" || type === "commonjs") return type === "module";
  return /^\s*(?:import\s*["'{*\w]|export\s)/m.test(readFileSync(path.join(root, handler), "utf8"));
}
