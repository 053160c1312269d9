/** What a kubelet changes in the kernel for all: settings, which are put back, and control groups, which are removed. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";

/** Those that the kubelet sets at its start (`pkg/util/sysctl`). */
const settings = [
  "vm/overcommit_memory",
  "vm/panic_on_oom",
  "kernel/panic",
  "kernel/panic_on_oops",
  "kernel/keys/root_maxkeys",
  "kernel/keys/root_maxbytes",
];
const fileOf = (name: string) => path.join("/proc/sys", name);
const cgroupRoot = "/sys/fs/cgroup";

export function readSettings(): Record<string, string> {
  const present = settings.filter((name) => existsSync(fileOf(name)));
  return Object.fromEntries(
    present.map((name) => [name, readFileSync(fileOf(name), "utf8").trim()]),
  );
}

export function restoreSettings(before: Record<string, string>): void {
  for (const [name, value] of Object.entries(before)) {
    if (readFileSync(fileOf(name), "utf8").trim() !== value) writeFileSync(fileOf(name), value);
  }
}

/** One hierarchy per controller (cgroup v1), or the one of all (v2). */
function hierarchies(): string[] {
  if (existsSync(path.join(cgroupRoot, "cgroup.controllers"))) return [cgroupRoot];
  return readdirSync(cgroupRoot).map((name) => path.join(cgroupRoot, name));
}

export const isCgroupV1 = (): boolean => !existsSync(path.join(cgroupRoot, "cgroup.controllers"));

/** The group below which the kubelet keeps those of its Pods. */
export function makeCgroup(name: string): void {
  for (const hierarchy of hierarchies()) {
    const dir = path.join(hierarchy, name);
    mkdirSync(dir, { recursive: true });
    // Without processors and memory of its own a group takes no process (cgroup v1).
    for (const file of ["cpuset.mems", "cpuset.cpus"]) {
      const own = path.join(dir, file);
      if (!isCgroupV1() || !existsSync(own)) continue;
      writeFileSync(own, readFileSync(path.join(hierarchy, file), "utf8"));
    }
  }
}

/** Its processes must have ended. */
export function removeCgroup(name: string): void {
  for (const hierarchy of hierarchies()) removeGroup(path.join(hierarchy, name));
}

function removeGroup(dir: string): void {
  if (!existsSync(dir)) return;
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    if (entry.isDirectory()) removeGroup(path.join(dir, entry.name));
  }
  rmdirSync(dir);
}
