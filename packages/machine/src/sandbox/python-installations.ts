/** Which versions of Python this machine has, wherever the usual ways to install one have put them. */
import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";

export interface PythonInstallation {
  /** The interpreter itself: neither a version manager's stand-in nor that of a virtual environment. */
  executable: string;
  /** Where its standard library is below. */
  prefix: string;
  /** What has to be on the module search path to import pip: a directory or a wheel. */
  pip?: string | undefined;
  /** The program of uv: a package of this Python, or on `PATH`. */
  uv?: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

const probeTimeoutMs = 15_000;

/** Distributions without pip mostly carry it for virtual environments, as a wheel. */
const probe = `
import glob, importlib.util, json, os, shutil, sys
pip = importlib.util.find_spec("pip")
pip = os.path.dirname(os.path.dirname(pip.origin)) if pip and pip.origin else None
if not pip:
    try:
        import ensurepip
        pip = next(iter(glob.glob(os.path.join(os.path.dirname(ensurepip.__file__), "_bundled", "pip-*.whl"))), None)
    except ImportError:
        pass
try:
    from uv import find_uv_bin
    uv = find_uv_bin()
except (ImportError, OSError):
    uv = shutil.which("uv")
print(json.dumps({
    "implementation": sys.implementation.name,
    "version": "%d.%d" % sys.version_info[:2],
    "executable": sys.executable,
    "base": getattr(sys, "_base_executable", None) or sys.executable,
    "isVirtual": sys.prefix != sys.base_prefix,
    "prefix": sys.base_prefix,
    "pip": pip,
    "uv": uv,
}))
`;

interface Probed extends PythonInstallation {
  implementation: string;
  version: string;
  base: string;
  isVirtual: boolean;
}

/**
 * CPython of this version (`3.12`), if one is here and runs. What is on `PATH` comes first, then the
 * places of version managers, the latest patch release first; their stand-ins on `PATH` come last.
 */
export async function findPython(
  version: string,
  env: Environment = process.env,
): Promise<PythonInstallation | undefined> {
  for (const dir of directories(env)) {
    const candidate = path.join(dir, `python${version}`);
    if (!existsSync(candidate)) continue;
    let found = await run(candidate, env);
    if (found?.isVirtual) found = await run(found.base, env);
    if (found?.implementation !== "cpython" || found.version !== version || found.isVirtual)
      continue;
    const { executable, prefix, pip, uv } = found;
    return { executable, prefix, pip: pip ?? undefined, uv: uv ?? undefined };
  }
  return undefined;
}

/** Versions by the names of programs, in order: `["3.9", "3.11"]`. Nothing is run. */
export function pythonVersions(env: Environment = process.env): string[] {
  const found = directories(env).flatMap((dir) =>
    namesIn(dir).flatMap((name) => /^python(3\.\d{1,2})$/.exec(name)?.[1] ?? []),
  );
  return [...new Set(found)].sort(byNumbers);
}

/** Undefined when it does not run: stand-ins of version managers do not, if their version is switched off. */
async function run(executable: string, env: Environment): Promise<Probed | undefined> {
  const options = {
    cwd: "/",
    env: { PATH: env["PATH"], HOME: env["HOME"] },
    timeout: probeTimeoutMs,
  };
  try {
    const { stdout } = await promisify(execFile)(executable, ["-I", "-c", probe], options);
    return JSON.parse(stdout) as Probed;
  } catch {
    return undefined;
  }
}

/** Where those are that `fetchPython` has brought: the user's, for all platforms. */
export function fetchedPythons(env: Environment): string {
  const cache = env["XDG_CACHE_HOME"] || path.join(env["HOME"] || homedir(), ".cache");
  return path.join(cache, "spry/pythons");
}

function directories(env: Environment): string[] {
  const home = env["HOME"] || homedir();
  const versioned = [
    path.join(env["PYENV_ROOT"] || path.join(home, ".pyenv"), "versions/*/bin"),
    path.join(env["ASDF_DATA_DIR"] || path.join(home, ".asdf"), "installs/python/*/bin"),
    path.join(home, ".local/share/mise/installs/python/*/bin"),
    path.join(home, ".local/share/uv/python/*/bin"),
    path.join(fetchedPythons(env), "*/bin"),
    "/opt/python/*/bin",
    "/opt/homebrew/opt/*/bin",
    "/usr/local/opt/*/bin",
    "/Library/Frameworks/Python.framework/Versions/*/bin",
  ];
  const onPath = (env["PATH"] ?? "").split(path.delimiter).filter((dir) => path.isAbsolute(dir));
  const isShims = (dir: string) => path.basename(dir) === "shims";
  const first = onPath.filter((dir) => !isShims(dir));
  const usual = ["/usr/local/bin", "/opt/homebrew/bin", "/usr/bin"];
  return [
    ...new Set([...first, ...versioned.flatMap(expanded), ...usual, ...onPath.filter(isShims)]),
  ];
}

/** The directories that a pattern with one `*` stands for, highest version first. */
function expanded(pattern: string): string[] {
  const [before = "", after = ""] = pattern.split("/*");
  return namesIn(before)
    .sort(byNumbers)
    .reverse()
    .map((name) => before + path.sep + name + after);
}

function byNumbers(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
