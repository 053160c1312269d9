import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { type Clock, messageOf, sleep, systemClock } from "@spry/kube";
import { type Confined, Confinement, helperEnvironment } from "./confinement.ts";
import { TrialFailed } from "./trial-failed.ts";

/** Each attempt's time limit, and how long to wait after it: what is busy or full may be so for a moment. */
const attempts = [
  { timeoutMs: 10_000, pauseMs: 500 },
  { timeoutMs: 30_000, pauseMs: 2_000 },
  { timeoutMs: 30_000, pauseMs: 0 },
];

/** What does not pass by itself: missing programs and options, missing rights, a kernel without the means. */
const lasting =
  /not permitted|permission denied|must be superuser|is missing|not found|invalid argument|(?:unrecognized|invalid|unknown) option|not implemented|unknown filesystem|\bE(?:PERM|ACCES|ROFS)\b|visible|sees processes|keeps privileges/i;

/** What a container must find: itself alone, without rights, and nothing of the directory above its own. */
const check = `
[ ! -e "$1" ] || { echo "the data directory is visible"; exit 1; }
[ "$PPID" = 1 ] || { echo "it sees processes of others"; exit 1; }
while read -r name value; do
  case "$name $value" in
    "CapEff: 0000000000000000" | "NoNewPrivs: 1") found="$found+";;
  esac
done < /proc/self/status
[ "$found" = "++" ] || { echo "it keeps privileges"; exit 1; }
: > /tmp/it && : > /dev/null`;

/**
 * How this machine can keep processes apart; or why it cannot, a clause for a person. Throws a TrialFailed if that could not
 * be found out, for a reason that may pass: a full file system, too many processes, no time.
 */
export async function findConfinement(
  dataDir: string,
  attempt: typeof tryIt = tryIt,
  clock: Clock = systemClock,
): Promise<Confinement | string> {
  if (process.platform !== "linux") return `${systemName()} has no namespaces`;
  const isRoot = process.getuid?.() === 0;
  mkdirSync(dataDir, { recursive: true });
  let why = "";
  for (const { timeoutMs, pauseMs } of attempts) {
    try {
      const confinement = new Confinement(isRoot ? "root" : "user", dataDir);
      await attempt(confinement, dataDir, timeoutMs);
      return confinement;
    } catch (error) {
      const words = wordsOf(error, timeoutMs);
      why = words.split("\n")[0] ?? "";
      if (lasting.test(words) || (!isRoot && hasNoUserNamespaces())) return clauseOf(why, isRoot);
      await sleep(clock, pauseMs);
    }
  }
  throw new TrialFailed(why, attempts.length);
}

async function tryIt(confinement: Confinement, dataDir: string, timeout: number): Promise<void> {
  const dir = mkdtempSync(path.join(dataDir, "trial-"));
  try {
    await runTrial(confinement, dir, timeout);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function runTrial(confinement: Confinement, dir: string, timeout: number): Promise<void> {
  const secret = path.join(dir, "secret");
  writeFileSync(secret, "", { mode: 0o600 });
  const user = confinement.userOf("127.0.0.1");
  const uid = path.basename(dir);
  const jail = confinement.jails.of(uid, "trial");
  const confined: Confined = { kind: confinement.kind, ...user, jail };
  const argv = ["/bin/sh", "-c", check, "sh", secret];
  const program = { argv, env: {}, cwd: "/", hostName: "trial" };
  const [file = "", ...args] = confinement.command(confined, program, []);
  const options = { cwd: "/", env: helperEnvironment(dir), timeout };
  try {
    await promisify(execFile)(file, args, { ...options, killSignal: "SIGKILL" });
  } finally {
    await confinement.jails.removeWritten(uid);
    confinement.jails.remove(uid);
  }
}

/** What the helpers say, or what has failed before they could. */
function wordsOf(error: unknown, timeoutMs: number): string {
  const {
    stdout = "",
    stderr = "",
    killed,
  } = error as Partial<Record<"stdout" | "stderr", string>> & {
    killed?: boolean;
  };
  if (killed) return `the trial exceeded its time limit (${timeoutMs / 1000} s)`;
  return `${stderr}${stdout}`.trim() || messageOf(error);
}

function clauseOf(why: string, isRoot: boolean): string {
  if (isRoot) return `this system does not let root make namespaces (${why})`;
  return `this system does not let an ordinary user make namespaces (${why})`;
}

/** The administrator's switch; unshare then says that no space is left. */
function hasNoUserNamespaces(): boolean {
  try {
    return readFileSync("/proc/sys/user/max_user_namespaces", "utf8").trim() === "0";
  } catch {
    return false;
  }
}

function systemName(): string {
  return process.platform === "darwin" ? "macOS" : "this system";
}
