/**
 * Whose process has a port of this machine that the platform needs: Pods that use the machine's network (`process`, `hostNetwork`) can
 * take the platform's ports while it does not run, and would get what is meant for it.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { readdir, readFile, readlink, stat } from "node:fs/promises";
import path from "node:path";
import { mapInTurn, sleep, systemClock } from "@spry/kube";
import { userOfAddress } from "./confinement/confinement.ts";
import { readOciRecord } from "./oci/oci-records.ts";
import { isAlive, listProcesses, type ProcessStat, signalIfSame } from "./processes.ts";
import {
  listNames,
  podDir,
  type PodRecord,
  podsDir,
  processFile,
  readPodRecord,
  readProcessRecord,
} from "./records.ts";
import { firstOfNamespace } from "./terminal.ts";

const atOnce = 8;
/** A Pod may start processes while others are being ended. */
const rounds = 5;
const pauseMs = 50;
const freeMs = 2_000;
/** `TCP_LISTEN` of the kernel's net/tcp_states.h. */
const listening = "0A";

export interface EndedPod {
  namespace: string;
  name: string;
}

/**
 * Ends all processes of the Pods of this data directory that have the port at the machine's loopback address, and returns which those
 * were. `isTaken`: the port is known to be taken, which a socket does that is bound and does not listen: the kernel lists none of those,
 * so that a Pod with a socket of which nothing is known counts, too.
 */
export async function endPodsAtPort(options: {
  /** Of the sandbox. */
  dataDir: string;
  port: number;
  isTaken?: boolean;
}): Promise<EndedPod[]> {
  const { port, isTaken = false } = options;
  if (process.platform !== "linux" || port === 0) return [];
  const dataDir = path.resolve(options.dataDir);
  const ended = new Map<string, EndedPod>();
  for (let round = 0; round < rounds; round++) {
    const sockets = socketsAt(port, isTaken);
    if (sockets.holding.size === 0 && (!isTaken || round > 0)) break;
    const own = await processesOfPods(dataDir);
    const found = await podsWith(own, sockets, isTaken && sockets.holding.size === 0);
    if (found.size === 0) break;
    for (const { pod, stat } of own)
      if (found.has(pod.uid)) {
        ended.set(pod.uid, { namespace: pod.namespace, name: pod.name });
        signalIfSame(stat, "SIGKILL");
      }
    for (let left = freeMs; left > 0 && socketsAt(port, isTaken).holding.size > 0; left -= pauseMs)
      await sleep(systemClock, pauseMs);
  }
  return [...ended.values()];
}

interface Sockets {
  /** Inodes of those that keep the port at 127.0.0.1, or ::1, from others. */
  holding: Set<string>;
  /** Inodes of all that the kernel lists. */
  listed: Set<string>;
}

/** proc_net(5): each line has the local address and port in hexadecimal, the state, and the inode as its tenth field. */
function socketsAt(port: number, isTaken: boolean): Sockets {
  const end = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const holding = new Set<string>();
  const listed = new Set<string>();
  for (const name of ["tcp", "tcp6"])
    for (const line of linesOf(name)) {
      const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
      listed.add(inode);
      // A connection has its local port, too, for as long as a process has it.
      const counts = state === listening || (isTaken && inode !== "0");
      if (counts && local.endsWith(end) && isLoopback(local.slice(0, -end.length)))
        holding.add(inode);
    }
  for (const name of ["udp", "udp6", "raw", "raw6", "icmp"])
    for (const line of linesOf(name)) listed.add(line.trim().split(/\s+/)[9] ?? "");
  for (const line of linesOf("unix")) listed.add(line.trim().split(/\s+/)[6] ?? "");
  for (const line of linesOf("netlink")) listed.add(line.trim().split(/\s+/)[9] ?? "");
  for (const line of linesOf("packet")) listed.add(line.trim().split(/\s+/)[8] ?? "");
  return { holding, listed };
}

/** In the order of the machine's bytes, by words of four: any address, 127.0.0.1, and the same of IPv6, also mapped ones. */
function isLoopback(hexadecimal: string): boolean {
  const isBigEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 0;
  const [v4, mapped, v6] = isBigEndian
    ? ["7F000001", "0000FFFF", "00000001"]
    : ["0100007F", "FFFF0000", "01000000"];
  return (
    /^0+$/.test(hexadecimal) ||
    hexadecimal === v4 ||
    hexadecimal === `${"0".repeat(16)}${mapped}${v4}` ||
    hexadecimal === `${"0".repeat(24)}${v6}`
  );
}

function linesOf(name: string): string[] {
  try {
    return readFileSync(`/proc/net/${name}`, "latin1").split("\n").slice(1).filter(Boolean);
  } catch {
    // Not every kernel has each of them.
    return [];
  }
}

interface OwnProcess {
  stat: ProcessStat;
  pod: PodRecord;
}

async function podsWith(
  own: readonly OwnProcess[],
  { holding, listed }: Sockets,
  orUnknown: boolean,
): Promise<Set<string>> {
  const found = new Set<string>();
  await mapInTurn(own, atOnce, async ({ stat: { pid }, pod }) => {
    const names = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const name of names) {
      const link = await readlink(`/proc/${pid}/fd/${name}`).catch(() => "");
      const inode = /^socket:\[(\d+)\]$/.exec(link)?.[1];
      if (inode === undefined) continue;
      if (holding.has(inode) || (orUnknown && !listed.has(inode))) found.add(pod.uid);
    }
  });
  return found;
}

/**
 * By whatever a Pod cannot change of all its processes: the variable that they are started with, their user, the PID namespace, the
 * session and the control group of its containers.
 */
async function processesOfPods(dataDir: string): Promise<OwnProcess[]> {
  const known = knownPods(dataDir);
  const isRoot = process.getuid?.() === 0;
  const found = await mapInTurn(await listProcesses(), atOnce, async (stat) => {
    const { pid, session } = stat;
    const pod =
      known.bySession.get(session) ??
      known.byUid.get(await markedPod(pid, dataDir)) ??
      known.byNamespace.get(await readlink(`/proc/${pid}/ns/pid`).catch(() => "")) ??
      (isRoot ? known.byOwner.get(await ownerOf(pid)) : undefined) ??
      known.byContainer.get(await containerOf(pid));
    return pod && pid !== process.pid ? { stat, pod } : undefined;
  });
  return found.filter((each) => each !== undefined);
}

function knownPods(dataDir: string) {
  const byUid = new Map<string, PodRecord>();
  const byOwner = new Map<number, PodRecord>();
  const bySession = new Map<number, PodRecord>();
  const byNamespace = new Map<string, PodRecord>();
  const byContainer = new Map<string, PodRecord>();
  for (const uid of listNames(podsDir(dataDir))) {
    const dir = podDir(dataDir, uid);
    const pod = readPodRecord(dir);
    if (pod?.uid !== uid) continue;
    byUid.set(uid, pod);
    byOwner.set(userOfAddress(pod.ip).uid, pod);
    for (const name of listNames(path.join(dir, "containers"))) {
      const plain = readProcessRecord(processFile(dir, name));
      if (plain && isAlive(plain)) {
        bySession.set(plain.pid, pod);
        const first = firstOfNamespace(plain.pid);
        const namespace = first === undefined ? "" : namespaceOf(first);
        if (namespace !== "" && namespace !== namespaceOf(process.pid))
          byNamespace.set(namespace, pod);
      }
      const contained = readOciRecord(dir, name);
      if (contained) byContainer.set(contained.id, pod);
    }
  }
  return { byUid, byOwner, bySession, byNamespace, byContainer };
}

function namespaceOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return "";
  }
}

const ownerOf = async (pid: number): Promise<number> =>
  (await stat(`/proc/${pid}`).catch(() => undefined))?.uid ?? -1;

async function markedPod(pid: number, dataDir: string): Promise<string> {
  const text = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
  const start = `SPRY_ROOT=${podsDir(dataDir)}/`;
  const entry = text.split("\0").find((each) => each.startsWith(start));
  return entry?.slice(start.length).split("/")[0] ?? "";
}

/** The runtime's name for a container is the last part of its control group. */
async function containerOf(pid: number): Promise<string> {
  const text = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "");
  return /\/spry-[0-9a-f]+\/([0-9a-f]{64})/.exec(text)?.[1] ?? "";
}
