/**
 * Which process has which network. A platform that was killed leaves its network behind, so that its Pods go on and the next one takes
 * it over. When that never comes, because its data directory is gone, the network is in the way of other platforms: it
 * has a block of addresses, and the machine's route to Services.
 */
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isAlive, readStat } from "../../sandbox/processes.ts";
import { namespaceDir } from "./host-link.ts";

const ownersDir = "/run/spry/networks";
const markOf = (name: string) => `${name}.removing`;
const pollMs = 20;
const patienceMs = 10_000;

/** Notes that this process has the network, and waits until no other one is removing it any more. */
export async function claimNetwork(name: string): Promise<void> {
  mkdirSync(ownersDir, { recursive: true });
  note(name);
  const deadline = performance.now() + patienceMs;
  while (isHeld(markOf(name)) && performance.now() < deadline) await sleep(pollMs);
  // Who removed it may have taken the note away, too.
  note(name);
}

/** To be called once the network has been removed. */
export function forgetNetwork(name: string): void {
  rmSync(path.join(ownersDir, name), { force: true });
}

/** Removes networks whose process has ended and that no Pod is left in. */
export async function removeAbandonedNetworks(
  own: string,
  remove: (name: string) => Promise<void>,
): Promise<void> {
  const names = readdirSync(ownersDir).filter((each) => /^spry-[0-9a-f]{8}$/.test(each));
  for (const name of names) {
    if (name === own || isHeld(name) || isHeld(markOf(name)) || hasProcesses(name)) continue;
    note(markOf(name));
    // A platform notes its network before it looks at this mark: one of the two sees the other.
    if (!isHeld(name)) {
      await remove(name);
      forgetNetwork(name);
    }
    rmSync(path.join(ownersDir, markOf(name)), { force: true });
  }
}

function note(file: string): void {
  const { pid } = process;
  const text = JSON.stringify({ pid, startTicks: readStat(pid)?.startTicks });
  writeFileSync(path.join(ownersDir, file), text, { mode: 0o600 });
}

/** Whether the process that has written this file is alive. */
function isHeld(file: string): boolean {
  try {
    const { pid, startTicks } = JSON.parse(readFileSync(path.join(ownersDir, file), "utf8")) as {
      pid: number;
      startTicks: number;
    };
    return isAlive({ pid, startTicks });
  } catch {
    return false;
  }
}

/** Whether a process is in a namespace of the network: Pods go on without their platform. */
function hasProcesses(name: string): boolean {
  const all = entriesOf(namespaceDir).filter(
    (each) => each === name || each.startsWith(`${name}-`),
  );
  const own = new Set(all.map((each) => inodeOf(path.join(namespaceDir, each))));
  return entriesOf("/proc").some((pid) => /^\d+$/.test(pid) && own.has(namespaceOf(pid) ?? -1));
}

function namespaceOf(pid: string): number | undefined {
  try {
    const [, inode] = /^net:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/ns/net`)) ?? [];
    return inode === undefined ? undefined : Number(inode);
  } catch {
    // It has just ended.
    return undefined;
  }
}

/** 0, which no namespace has, for one that has just gone. */
const inodeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.ino ?? 0;

function entriesOf(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
