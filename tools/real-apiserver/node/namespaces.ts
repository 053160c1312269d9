/**
 * A machine within the machine: network, processes, mounts and host name of its own. Whatever runs in it,
 * containers included, ends with its first process, and with that its bridges, firewall rules, routes,
 * mounts and network settings are gone too.
 */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import {
  type BackgroundProcess,
  identify,
  isRunning,
  lastLines,
  startInBackground,
} from "../background-process.ts";
import { binaryOf } from "../binaries.ts";
import { Problem } from "../problem.ts";
import { until } from "../until.ts";

/** A busy machine is no failure. */
const timeoutMs = 60_000;

/** Its own `/var` and `/run` below the cluster's directory, so that every program finds its usual places. */
const script = `set -e
mount --make-rshared /
mount --bind "$1/var" /var
mount -t tmpfs -o mode=755 tmpfs /run
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
touch "$1/namespaces-ready"
exec "$2"
`;

export async function startNamespaces(
  dir: string,
  signal: AbortSignal,
): Promise<BackgroundProcess> {
  for (const hidden of ["/var/", "/run/"]) {
    if (!`${dir}/`.startsWith(hidden)) continue;
    throw new Problem(`a node in ${dir}: it has a ${hidden} of its own`, "name another --dir");
  }
  mkdirSync(path.join(dir, "var", "lib"), { recursive: true });
  mkdirSync(path.join(dir, "var", "log"));
  mkdirSync(path.join(dir, "var", "tmp"), { mode: 0o1777 });
  symlinkSync("/run", path.join(dir, "var", "run"));
  writeFileSync(path.join(dir, "namespaces.sh"), script);
  const own = ["--net", "--mount", "--pid", "--ipc", "--uts", "--fork", "--mount-proc"];
  const run = ["sh", path.join(dir, "namespaces.sh"), dir, binaryOf("pause")];
  const log = path.join(dir, "namespaces.log");
  const args = [...own, "--propagation=private", "--kill-child", ...run];
  const outer = startInBackground("namespaces", "unshare", args, { cwd: dir, log });
  await until("the namespaces are there", { signal, timeoutMs }, () => {
    if (!isRunning(outer)) throw new Error(lastLines(outer));
    return Promise.resolve(existsSync(path.join(dir, "namespaces-ready")));
  });
  // Its end is the end of all; `unshare` only waits for it.
  return { ...outer, ...identify(await childOf(outer.pid, signal)) };
}

/** The command line that runs a program in the namespaces. */
export function inNamespaces(
  first: BackgroundProcess,
  file: string,
  args: readonly string[],
): [file: string, args: string[]] {
  const target = ["--target", String(first.pid), "--net", "--mount", "--pid", "--ipc", "--uts"];
  return ["nsenter", [...target, "--", file, ...args]];
}

/** `nsenter` waits for the program that it runs: that one is what is to be ended, and what takes memory. */
export async function startInNamespaces(
  first: BackgroundProcess,
  name: string,
  file: string,
  args: readonly string[],
  options: { cwd: string; log: string; signal: AbortSignal },
): Promise<BackgroundProcess> {
  const outer = startInBackground(name, ...inNamespaces(first, file, args), options);
  return { ...outer, ...identify(await childOf(outer.pid, options.signal)) };
}

async function childOf(pid: number, signal: AbortSignal): Promise<number> {
  let child = 0;
  await until(`process ${pid} has a child`, { signal, timeoutMs }, () => {
    const list = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    child = Number(list.split(" ")[0]);
    return Promise.resolve(child > 0);
  });
  return child;
}
