import { readFileSync } from "node:fs";

/**
 * Cores that this process may use in the long run, by its control group (cgroups(7)); undefined without
 * such a limit. `root` is where the system's files are.
 */
export function cpuLimit(root = ""): number | undefined {
  const groups = read(`${root}/proc/self/cgroup`) ?? "";
  const [, unified = ""] = /^0::(.*)$/m.exec(groups) ?? [];
  const [, own = ""] = /^\d+:(?:[^:\n]*,)?cpu(?:,[^:\n]*)?:(.*)$/m.exec(groups) ?? [];
  const files = `${root}/sys/fs/cgroup`;
  // A container mostly sees its own group as the root of all, whatever the group's name is outside.
  const max = read(`${files}${unified}/cpu.max`) ?? read(`${files}/cpu.max`);
  if (max !== undefined) return ratio(...max.split(" "));
  const of = (name: string) => read(`${files}/cpu${own}/${name}`) ?? read(`${files}/cpu/${name}`);
  return ratio(of("cpu.cfs_quota_us"), of("cpu.cfs_period_us"));
}

/** What has no limit says `max`, or -1. */
function ratio(quota?: string, period?: string): number | undefined {
  const cores = Number(quota) / Number(period);
  return cores > 0 ? cores : undefined;
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return undefined;
  }
}
