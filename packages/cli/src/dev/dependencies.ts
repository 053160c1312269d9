/**
 * The packages of a directory, as the builder would install them. A `node_modules` that is there and fits the manifest
 * and the lock file is used as it is; otherwise they go to the cache folder, so that the directory stays as the user
 * left it (installing with --omit=dev into it would delete the user's development packages).
 */
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { isInstallationInput, ownInstallScripts, planProject } from "@spry/image";
import { type SourceList } from "../project/files.ts";
import { type Project } from "../project/project.ts";
import { Ticker } from "../ticker.ts";
import { cacheDir, fileAtHome } from "./places.ts";

/** Where the packages are: in the directory itself, elsewhere, or not needed. */
export type Packages = { kind: "none" } | { kind: "own" } | { kind: "cache"; modules: string };

const manifests =
  /^(?:package(?:-lock)?\.json|npm-shrinkwrap\.json|\.npmrc|pyproject\.toml|uv\.lock|poetry\.lock|pylock\.toml|.*requirements.*\.txt|requirements\/.*)$/;
interface ManifestFile {
  path: string;
  content: Buffer;
  mode: number;
}

const code = /\.[cm]?[jt]s$/;
const maxCodeBytes = 16_000_000;

/** Whether a file says which packages are needed. `file`: relative. */
export const isManifest = (file: string): boolean => manifests.test(file);

/** Whether an installation may read it: a manifest may name it. */
export const mayBeInstalled = (file: string): boolean => isInstallationInput(file);

/** Installs what is missing. Throws a BuildError with the installer's words. */
export async function providePackages(
  { root, runtime }: Project,
  source: SourceList,
  {
    bin,
    scratch,
    report: onLine,
    isInspected,
  }: { bin: string; scratch: string; report: (line: string) => void; isInspected: boolean },
): Promise<Packages> {
  const ticker = new Ticker();
  const report = (line: string) => {
    ticker.clear();
    onLine(line);
  };
  if (runtime.language === "nodejs" && (fits(root) || isInstalledAround(root)))
    return { kind: "own" };
  let room = maxCodeBytes;
  const { scripts } = readJson<{ scripts?: object }>(path.join(root, "package.json")) ?? {};
  const hasScripts = runtime.language === "nodejs" && ownInstallScripts({ scripts }).length > 0;
  const files = source.files
    .filter(({ link }) => !link)
    .filter(
      ({ path: name, size }) =>
        (hasScripts || isInstallationInput(name) || code.test(name)) && (room -= size) > 0,
    )
    .map(({ path: name, file }) => ({
      path: name,
      content: readFileSync(file),
      mode: hasScripts ? statSync(file).mode & 0o777 : 0o644,
    }));
  const before = { PATH: process.env["PATH"], cache: process.env["npm_config_cache"] };
  const setVariables = () => {
    process.env["PATH"] = `${bin}${path.delimiter}${before.PATH ?? ""}`;
    process.env["npm_config_cache"] ??= path.join(cacheDir(), "npm");
  };
  setVariables();
  const plan = await planProject(
    {
      files: runtime.language === "python" && isInspected ? withDebugger(files) : files,
      runtime: runtime.name,
      npmConfig: fileAtHome(".npmrc"),
      pipConfig: fileAtHome(".config/pip/pip.conf"),
      report,
    },
    scratch,
  ).finally(() => {
    restore("PATH", before.PATH);
    restore("npm_config_cache", before.cache);
  });
  if (!plan) return { kind: "none" };
  // Links lead to this very directory: no other one may find them.
  const own = hasLocalPackages(source)
    ? `-${createHash("sha256").update(root).digest("hex").slice(0, 12)}`
    : "";
  const dir = path.join(cacheDir(), "packages", `${plan.key}${own}`);
  if (existsSync(dir)) return { kind: "cache", modules: plan.modulesIn(dir) };
  const installer = runtime.language === "nodejs" ? "npm" : "pip";
  report(`installing packages with ${installer} ...`);
  ticker.wait(`  ${installer}`);
  const partial = `${dir}.${process.pid}`;
  const removePartial = () => rmSync(partial, { recursive: true, force: true });
  process.once("exit", removePartial);
  mkdirSync(partial, { recursive: true });
  setVariables();
  try {
    const modules = await plan.install(partial);
    if (own) linkToSource(modules, root);
    rmSync(path.join(partial, "home"), { recursive: true, force: true });
    // Two processes may have installed the same.
    if (existsSync(dir)) rmSync(partial, { recursive: true, force: true });
    else renameSync(partial, dir);
  } finally {
    restore("PATH", before.PATH);
    restore("npm_config_cache", before.cache);
    process.off("exit", removePartial);
    removePartial();
    ticker.stop();
  }
  return { kind: "cache", modules: plan.modulesIn(dir) };
}

/** With debugpy, which the developer needs and the Function does not. What pins each package by its hash stays as it is. */
function withDebugger(files: ManifestFile[]): ManifestFile[] {
  const requirements = files.find((file) => file.path === "requirements.txt");
  const text = requirements?.content.toString() ?? "";
  const hasOther = !requirements && files.some((file) => file.path === "pyproject.toml");
  if (hasOther || /^\s*debugpy\b/m.test(text) || text.includes("--hash")) return files;
  const others = files.filter((file) => file !== requirements);
  const content = Buffer.from(`${text.trimEnd()}\ndebugpy\n`);
  return [...others, { path: "requirements.txt", content, mode: 0o644 }];
}

/** More than one package.json: packages of the directory itself (`file:`, workspaces). */
const hasLocalPackages = ({ files }: SourceList): boolean =>
  files.filter(({ path: name }) => path.posix.basename(name) === "package.json").length > 1;

/** The installer saw manifests only, and linked those: their code is in the directory. */
function linkToSource(modules: string, root: string): void {
  const installed = path.dirname(modules);
  const scopes = readdirSync(modules).filter((name) => name.startsWith("@"));
  for (const folder of ["", ...scopes]) {
    for (const entry of readdirSync(path.join(modules, folder), { withFileTypes: true })) {
      if (!entry.isSymbolicLink()) continue;
      const link = path.join(modules, folder, entry.name);
      const target = path.relative(installed, path.resolve(path.dirname(link), readlinkSync(link)));
      if (target.startsWith("..")) continue;
      rmSync(link);
      symlinkSync(path.join(root, target), link, "junction");
    }
  }
}

function restore(name: string, value: string | undefined): void {
  if (value === undefined) Reflect.deleteProperty(process.env, name);
  else process.env[name] = value;
}

interface Lock {
  packages?: Record<
    string,
    { version?: string; dev?: boolean; optional?: boolean; link?: boolean }
  >;
}

/** Whether `node_modules` has what package.json and a lock file ask for, and in the lock file's versions. */
function fits(root: string): boolean {
  const installed = readJson<Lock>(path.join(root, "node_modules/.package-lock.json"));
  if (!installed?.packages) return false;
  const manifest = readJson<{ dependencies?: object }>(path.join(root, "package.json")) ?? {};
  const names = Object.keys(manifest.dependencies ?? {});
  const has = (name: string) => existsSync(path.join(root, "node_modules", name, "package.json"));
  if (!names.every(has)) return false;
  const lock = readJson<Lock>(path.join(root, "package-lock.json"));
  return Object.entries(lock?.packages ?? {}).every(
    ([place, { version, dev, optional, link }]) =>
      place === "" ||
      dev === true ||
      optional === true ||
      link === true ||
      installed.packages?.[place]?.version === version,
  );
}

/** Whether the directory is a workspace, and the `node_modules` around it have what it asks for: Node.js looks there as well. */
function isInstalledAround(root: string): boolean {
  const { dependencies = {} } =
    readJson<{ dependencies?: object }>(path.join(root, "package.json")) ?? {};
  let missing = Object.keys(dependencies);
  for (let at = root; ; at = path.dirname(at)) {
    missing = missing.filter(
      (name) => !existsSync(path.join(at, "node_modules", name, "package.json")),
    );
    const installed = readJson<Lock>(path.join(at, "node_modules/.package-lock.json"));
    const place = path.relative(at, root).split(path.sep).join("/");
    if (place !== "" && installed?.packages?.[place]) return missing.length === 0;
    if (at === path.dirname(at)) return false;
  }
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- says at the call what is expected
function readJson<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch {
    return undefined;
  }
}

/**
 * Writes a module that lets the code below `root` find the packages of `modules`, for `node --require`: Node.js looks
 * for them next to the importing file only. What the directory has itself is found first. Returns the file.
 */
export function writeResolveHook(scratch: string, root: string, modules: string): string {
  const file = path.join(scratch, "packages.cjs");
  writeFileSync(
    file,
    `(${resolveFrom.toString()})(${JSON.stringify(root)}, ${JSON.stringify(modules)});\n`,
  );
  return file;
}

/** Runs in the Function's process, from its text: it can use nothing of this file. */
function resolveFrom(root: string, modules: string): void {
  const { createRequire, registerHooks } = process.getBuiltinModule("node:module");
  const { pathToFileURL } = process.getBuiltinModule("node:url");
  const inside = pathToFileURL(`${root}/`).href;
  const parentURL = pathToFileURL(`${modules}/../package.json`).href;
  const require = createRequire(parentURL);
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const isPackage = /^(?:@[^/]|[^./#@])/.test(specifier) && !/^\w+:/.test(specifier);
      if (!isPackage || !context.parentURL?.startsWith(inside))
        return nextResolve(specifier, context);
      try {
        return nextResolve(specifier, context);
      } catch (error) {
        try {
          if (!context.conditions.includes("require"))
            return nextResolve(specifier, { ...context, parentURL });
          return { url: pathToFileURL(require.resolve(specifier)).href, shortCircuit: true };
        } catch {
          // What is shown of it is the user's line, and not this one.
          const { stack = "" } = error as Error;
          const isOther = (line: string) => !line.includes("packages.cjs");
          (error as Error).stack = stack.split("\n").filter(isOther).join("\n");
          throw error;
        }
      }
    },
  });
}
