import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { type SourceFile } from "../function-source.ts";
import { runInstaller } from "../installer.ts";
import { type PipRun, pipEnvironment } from "../pip.ts";
import { requirementsFile } from "../requirements-files.ts";
import { messageOf, UserError } from "../user-error.ts";
import { assertAsPip } from "./agreement.ts";
import { NotForUv } from "./not-for-uv.ts";
import { type PackageSources, sourcesOf, sourceVariables } from "./package-sources.ts";
import { type PipSettings, readPipSettings } from "./pip-settings.ts";
import { type PlainRequirements, plainRequirements } from "./requirements.ts";

/** pip's own, which it waits for an index that does not answer. */
const defaultTimeoutSeconds = 15;
const formatSettings = ["no-binary", "only-binary"] as const;

/** uv's program, if there is one on `PATH`. */
export function findUv(): string | undefined {
  return onPath("uv");
}

/**
 * Installs requirements into the run's target as pip would: from the places that pip's settings name, the same versions, the same
 * files. Throws `NotForUv`, with nothing left in the target, where that is not certain or uv fails: then it is pip's turn,
 * whose words authors know.
 */
export async function installWithUv(
  uv: string,
  run: PipRun,
  requirements: readonly SourceFile[],
): Promise<void> {
  const environment = pipEnvironment(run);
  const { directory: input, home } = run;
  const settings = await readPipSettings({ directory: input, home, env: environment });
  const sources = sourcesOf(settings);
  const plain = plainRequirements(requirements, sources);
  if (run.onlyWheels && plain.hasFormats)
    throw new NotForUv("the requirements specify which packages are built from source");
  const directory = join(home, "requirements-for-uv");
  writeRequirements(plain, directory);
  const env = {
    ...foreignVariables(),
    ...environment,
    ...sourceVariables(sources),
    ...connection(settings),
    // One line of what it says of itself is needed: how many versions it tried.
    RUST_LOG: "uv_resolver::resolver=debug",
  };
  const args = uvArguments(run, settings, sources, plain);
  try {
    // Its debugging output is for the check below.
    const quiet = { ...run, directory, env, onLine: undefined };
    const { code, output } = await runInstaller(uv, args, quiet);
    if (code !== 0) throw new NotForUv(`uv failed with exit code ${code}`);
    assertAsPip(run.target, output, sources);
  } catch (error) {
    rmSync(run.target, { recursive: true, force: true });
    mkdirSync(run.target);
    if (error instanceof NotForUv || error instanceof UserError) throw error;
    throw new NotForUv(messageOf(error));
  }
}

function writeRequirements({ files }: PlainRequirements, directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  for (const { path, text } of files) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
}

function uvArguments(
  run: PipRun,
  settings: PipSettings,
  { noIndex, trustedHosts }: PackageSources,
  { hashed }: PlainRequirements,
): string[] {
  const formats = formatSettings.flatMap((name) => {
    const value = settings.get(name) ?? "";
    if (!/^[\w.,:-]*$/.test(value) || value.includes(":none:"))
      throw new NotForUv(`uv has no equivalent of pip's setting ${name}`);
    return value.split(",").flatMap((each) => (each ? [`--${name}`, each] : []));
  });
  return [
    "pip",
    "install",
    "--quiet",
    "--no-config",
    "--no-cache",
    "--no-python-downloads",
    `--python=${onPath("python3") ?? "python3"}`,
    `--target=${run.target}`,
    `--requirements=${requirementsFile}`,
    // pip looks at all indexes, too, for the newest version.
    "--index-strategy=unsafe-best-match",
    ...(noIndex ? ["--no-index"] : []),
    ...(hashed ? ["--require-hashes"] : []),
    ...trustedHosts.flatMap((host) => ["--allow-insecure-host", host]),
    ...(run.onlyWheels ? ["--no-build"] : formats),
  ];
}

/** Certificates and patience, as pip has them. */
function connection(settings: PipSettings): Record<string, string> {
  const { REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE } = process.env;
  const certificates = settings.get("cert") ?? REQUESTS_CA_BUNDLE ?? CURL_CA_BUNDLE;
  const timeout = settings.get("timeout") ?? settings.get("default-timeout");
  const seconds = Math.ceil(Number(timeout ?? defaultTimeoutSeconds)) || defaultTimeoutSeconds;
  return {
    UV_HTTP_TIMEOUT: String(seconds),
    // pip reports an index that cannot be reached.
    UV_HTTP_RETRIES: "1",
    ...(certificates && { SSL_CERT_FILE: certificates }),
  };
}

/** uv's own settings would let it choose otherwise than pip. */
function foreignVariables(): Record<string, undefined> {
  const names = Object.keys(process.env).filter((name) => name.startsWith("UV_"));
  return Object.fromEntries(names.map((name) => [name, undefined]));
}

function onPath(program: string): string | undefined {
  const directories = (process.env["PATH"] ?? "").split(delimiter).filter((each) => each !== "");
  return directories.map((directory) => join(directory, program)).find((file) => existsSync(file));
}
