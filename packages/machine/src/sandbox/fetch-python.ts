/**
 * CPython for a machine that has none of that version: the one package registry that carries its binary is that of Go
 * modules, where programs get a Python to embed. `go` brings it, by its own settings and with its own checks.
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { fetchedPythons } from "./python-installations.ts";
import { unpackEmbedded } from "./unpack-embedded.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const module = "github.com/kluctl/go-embed-python";
/** Registries list some releases only; these they have, too. */
const known = ["v0.0.0-3.12.3-20240415-1"];
/** A person waits. A registry that is there answers within moments, and what it sends arrives without long gaps. */
const patience = { answerMs: 15_000, gapMs: 20_000, totalMs: 300_000 };
const staleMs = 3_600_000;
/** By the names that Go has for them. */
const systems: Readonly<Record<string, string>> = { linux: "linux", darwin: "darwin" };
const processors: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/**
 * Installs CPython `version` (`3.14`) where `findPython` looks. Returns why it cannot be had, as a clause for a
 * message, or undefined when it is installed.
 */
export async function fetchPython(
  version: string,
  progress: (message: string) => void,
  env: Environment = process.env,
  limits: typeof patience = patience,
): Promise<string | undefined> {
  const [system, processor] = [systems[process.platform], processors[process.arch]];
  if (!system || !processor) return `no download exists for ${process.platform} ${process.arch}`;
  const program = goProgram(env);
  if (!program) return "Go, which would download it, is not installed either";
  const place = fetchedPythons(env);
  // Next to that place, not in it: an incomplete installation must not be found.
  const scratch = `${place}.partial-${randomBytes(4).toString("hex")}`;
  const go = (args: string[], signal: AbortSignal) => run(program, args, { scratch, env, signal });
  try {
    await removeStale(place);
    await mkdir(scratch, { recursive: true });
    const answer = AbortSignal.timeout(limits.answerMs);
    const list = await go(["list", "-m", "-versions", module], answer).catch((error: unknown) => {
      throw answer.aborted ? new Error(silence(limits.answerMs), { cause: error }) : error;
    });
    const found = newestOf(version, [list, ...known]);
    if (!found) return "the registry of Go modules does not carry it";
    const target = path.join(place, `python-${found.python}`);
    // Another platform's, of just now; or one that does not run here, which it would not the next time, either.
    if (existsSync(target)) return undefined;
    progress(`Fetching Python ${found.python} (Go module ${module} ${found.tag})`);
    const downloaded = await whileItGrows(scratch, limits, (signal) =>
      go(["mod", "download", "-json", `${module}@${found.tag}`], signal),
    );
    const { Dir: source } = JSON.parse(downloaded) as { Dir: string };
    const made = path.join(scratch, "made");
    await unpackEmbedded(path.join(source, `python/internal/data/${system}-${processor}`), made);
    const packages = path.join(made, `lib/python${version}/site-packages`);
    await unpackEmbedded(path.join(source, "pip/internal/data"), packages);
    await mkdir(place, { recursive: true });
    await moved(made, target);
    return undefined;
  } catch (error) {
    const { stderr = "", message } = error as Error & { stderr?: string };
    const lines = stderr.trim().split("\n").slice(-3).join("\n");
    return `fetching it with ${program} failed: ${withoutCredentials(lines || message)}`;
  } finally {
    // What stays, the next one removes.
    await rm(scratch, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** The address of a registry may contain a password, and all who can see the Pod can read what failed. */
function withoutCredentials(text: string): string {
  return text.replaceAll(/\/\/[^/\s]*@/g, "//");
}

function goProgram(env: Environment): string | undefined {
  const dirs = (env["PATH"] ?? "").split(path.delimiter).filter((dir) => path.isAbsolute(dir));
  return dirs.map((dir) => path.join(dir, "go")).find((file) => existsSync(file));
}

const silence = (ms: number): string =>
  `the registry of Go modules has sent nothing for ${ms / 1000} s`;

/** Ends the work when no byte has arrived in `dir` for too long: `go` itself waits for ever. */
async function whileItGrows<T>(
  dir: string,
  { gapMs, totalMs }: typeof patience,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const total = AbortSignal.timeout(totalMs);
  let [size, since] = [-1, performance.now()];
  const look = async () => {
    const now = await sizeOf(dir);
    if (now !== size) [size, since] = [now, performance.now()];
    else if (performance.now() - since > gapMs) stop.abort();
  };
  const looks = setInterval(() => void look(), gapMs / 20);
  try {
    return await work(AbortSignal.any([stop.signal, total]));
  } catch (error) {
    if (stop.signal.aborted) throw new Error(silence(gapMs), { cause: error });
    if (!total.aborted) throw error;
    throw new Error(`the download exceeded ${totalMs / 1000} s`, { cause: error });
  } finally {
    clearInterval(looks);
  }
}

/** What is removed meanwhile has no size. */
async function sizeOf(dir: string): Promise<number> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile());
  const sizes = files.map((file) =>
    stat(path.join(file.parentPath, file.name)).then(
      ({ size }) => size,
      () => 0,
    ),
  );
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

async function run(
  program: string,
  args: string[],
  { scratch: cwd, env, signal }: { scratch: string; env: Environment; signal: AbortSignal },
): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, {
    cwd,
    env: {
      ...env,
      // Systems that are not wanted are in it, too: gone with the scratch directory, as far as it can be written to.
      GOPATH: path.join(cwd, "go"),
      GOMODCACHE: path.join(cwd, "go/pkg/mod"),
      GOCACHE: path.join(cwd, "go/cache"),
      GOFLAGS: `${env["GOFLAGS"] ?? ""} -modcacherw`.trim(),
      GOTOOLCHAIN: "local",
      GO111MODULE: "on",
      GOWORK: "off",
    },
    signal,
    killSignal: "SIGKILL",
    maxBuffer: 1024 * 1024,
  });
  return stdout;
}

interface Found {
  tag: string;
  python: string;
}

/** Tags are `v0.0.0-<version of Python>-<date>-<number>`. */
function newestOf(version: string, lists: string[]): Found | undefined {
  const tags = lists.flatMap((list) => list.split(/\s+/));
  const found = tags.flatMap((tag): Found[] => {
    const [, python] = /^v0\.0\.0-(3\.\d{1,2}\.\d{1,3})-\d{8}-\d{1,3}$/.exec(tag) ?? [];
    return python?.startsWith(`${version}.`) ? [{ tag, python }] : [];
  });
  return found.sort((a, b) => a.tag.localeCompare(b.tag, "en", { numeric: true })).at(-1);
}

/** Others may be about to do the same: who is first is right. */
async function moved(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error;
  }
}

/** What a program that was killed has left. */
async function removeStale(place: string): Promise<void> {
  const parent = path.dirname(place);
  for (const name of await readdir(parent).catch(() => [])) {
    if (!name.startsWith(`${path.basename(place)}.partial-`)) continue;
    const dir = path.join(parent, name);
    const { mtimeMs = Date.now() } = (await stat(dir).catch(() => undefined)) ?? {};
    if (Date.now() - mtimeMs > staleMs) await rm(dir, { recursive: true, force: true });
  }
}
