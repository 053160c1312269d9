import { spawn } from "node:child_process";
import { UserError } from "./user-error.ts";

export interface NpmRun {
  /** Where package.json is. */
  directory: string;
  /** Home and cache of the run, thrown away with the build. */
  home: string;
  /** An `.npmrc` with registries and credentials. */
  userConfig?: string | undefined;
  timeoutMs: number;
}

const outputLimit = 64 * 1024;
const shownLines = 12;

/** What npm says when the registry or the way to it is to blame: the next try may do better. */
const temporaryCodes =
  /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ERR_SOCKET_TIMEOUT|EPIPE|ENETUNREACH|CERT_\w+|SELF_SIGNED_CERT\w*|UNABLE_TO_\w+|E429|E5\d\d|ENOSPC)\b/;

/** Runs the npm that belongs to the interpreter on `PATH`. Its output is shown only when it fails. */
export async function runNpm(command: "ci" | "install", run: NpmRun): Promise<void> {
  const flags = [
    "--omit=dev",
    "--no-audit",
    "--no-fund",
    "--no-progress",
    "--no-update-notifier",
    "--loglevel=error",
    // A registry that is away is noticed in seconds; the Job tries again.
    "--fetch-retry-mintimeout=1000",
    "--fetch-retry-maxtimeout=10000",
  ];
  if (run.userConfig !== undefined) flags.push(`--userconfig=${run.userConfig}`);
  const { code, output } = await execute("npm", [command, ...flags], run);
  if (code === 0) return;
  const message = `installing dependencies: npm ${command} ended with ${code}\n${meaningfulLines(output)}`;
  if (temporaryCodes.test(output)) throw new Error(message);
  throw new UserError(message);
}

function execute(
  file: string,
  args: string[],
  run: NpmRun,
): Promise<{ code: number | string; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: run.directory,
      env: environmentOf(run),
      stdio: ["ignore", "pipe", "pipe"],
      timeout: run.timeoutMs,
    });
    let output = "";
    const collect = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-outputLimit);
    };
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    const stop = () => child.kill();
    process.once("SIGTERM", stop);
    child.once("error", (cause) => reject(new Error(`starting ${file}`, { cause })));
    child.once("close", (code, signal) => {
      process.removeListener("SIGTERM", stop);
      resolve({ code: code ?? signal ?? "no code", output });
    });
  });
}

/** Install scripts are foreign code: they do not see where our own credentials are. */
function environmentOf({ home }: NpmRun): NodeJS.ProcessEnv {
  const environment: NodeJS.ProcessEnv = {
    ...process.env,
    HOME: home,
    npm_config_cache: `${home}/.npm`,
  };
  for (const name of Object.keys(environment))
    if (name === "DOCKER_CONFIG" || name.startsWith("SPRY_")) delete environment[name];
  return environment;
}

/** npm's last lines without its prefix, its manual, its pointers to log files, and anybody's password. */
export function meaningfulLines(output: string): string {
  const lines = output
    .split("\n")
    .map((line) =>
      line
        .replace(/^npm (?:error|ERR!) ?/, "")
        .replace(/^404 */, "")
        .trimEnd(),
    )
    .filter(
      (line) => line !== "" && !/A complete log of this run|^\s*\S+-debug-\d+\.log$/.test(line),
    )
    .map((line) => line.replace(/(:\/\/)[^/@\s]+@/g, "$1").slice(0, 300));
  // Wrong usage is explained with the command's title and its whole manual.
  const manual = lines.indexOf("Usage:");
  return lines
    .slice(0, manual < 1 ? lines.length : manual - 1)
    .slice(-shownLines)
    .join("\n");
}
