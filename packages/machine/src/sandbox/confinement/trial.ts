import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { messageOf } from "@spry/kube";
import { type Confined, Confinement, helperEnvironment } from "./confinement.ts";

const timeoutMs = 10_000;

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

/** How this machine can keep processes apart; or why it cannot, a clause for a person. */
export async function findConfinement(dataDir: string): Promise<Confinement | string> {
  if (process.platform !== "linux") return `${systemName()} has no namespaces`;
  const isRoot = process.getuid?.() === 0;
  mkdirSync(dataDir, { recursive: true });
  const dir = mkdtempSync(path.join(dataDir, "trial-"));
  try {
    const confinement = new Confinement(isRoot ? "root" : "user", dataDir);
    await tryIt(confinement, dir);
    return confinement;
  } catch (error) {
    return whyOf(error, isRoot);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function tryIt(confinement: Confinement, dir: string): Promise<void> {
  const secret = path.join(dir, "secret");
  writeFileSync(secret, "", { mode: 0o600 });
  const user = confinement.userOf("127.0.0.1");
  const uid = path.basename(dir);
  const jail = confinement.jails.of(uid, "trial");
  const confined: Confined = { kind: confinement.kind, ...user, jail };
  const argv = ["/bin/sh", "-c", check, "sh", secret];
  const program = { argv, env: {}, cwd: "/", hostName: "trial" };
  const [file = "", ...args] = confinement.command(confined, program, []);
  const options = { cwd: "/", env: helperEnvironment(dir), timeout: timeoutMs };
  try {
    await promisify(execFile)(file, args, { ...options, killSignal: "SIGKILL" });
  } finally {
    confinement.jails.remove(uid);
  }
}

function whyOf(error: unknown, isRoot: boolean): string {
  const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
  const words = `${stderr}${stdout}`.trim().split("\n")[0] ?? "";
  const why = words || messageOf(error);
  if (isRoot) return `this system does not let root make namespaces (${why})`;
  return `this system does not let an ordinary user make namespaces (${why})`;
}

function systemName(): string {
  return process.platform === "darwin" ? "macOS" : "this system";
}
