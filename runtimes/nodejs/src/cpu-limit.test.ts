import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { cpuLimit } from "./cpu-limit.ts";

const v1 = "12:pids:/a\n5:cpuset:/c\n4:cpu,cpuacct:/kubepods/pod1\n1:name=systemd:/b\n0::/\n";

test.each<{ when: string; files: Record<string, string>; cores: number | undefined }>([
  { when: "nothing is known", files: {}, cores: undefined },
  {
    when: "a container is limited (version 2)",
    files: { "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "15000 100000\n" },
    cores: 0.15,
  },
  {
    when: "it is not",
    files: { "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n" },
    cores: undefined,
  },
  {
    when: "a process outside of containers is",
    files: { "proc/self/cgroup": "0::/own\n", "sys/fs/cgroup/own/cpu.max": "150000 100000\n" },
    cores: 1.5,
  },
  {
    when: "a container sees its group's name outside, and its files inside",
    files: { "proc/self/cgroup": "0::/kubepods/pod1\n", "sys/fs/cgroup/cpu.max": "2000 100000\n" },
    cores: 0.02,
  },
  {
    when: "a process outside of containers is limited (version 1)",
    files: {
      "proc/self/cgroup": v1,
      "sys/fs/cgroup/cpu/kubepods/pod1/cpu.cfs_quota_us": "5000\n",
      "sys/fs/cgroup/cpu/kubepods/pod1/cpu.cfs_period_us": "100000\n",
    },
    cores: 0.05,
  },
  {
    when: "a container is (version 1)",
    files: {
      "proc/self/cgroup": v1,
      "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
      "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    },
    cores: 0.5,
  },
  {
    when: "it is not (version 1)",
    files: {
      "proc/self/cgroup": v1,
      "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
      "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    },
    cores: undefined,
  },
])("$when: $cores cores", ({ files, cores }) => {
  const root = mkdtempSync(path.join(tmpdir(), "spry-cgroup-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    writeFileSync(path.join(root, name), content);
  }
  expect(cpuLimit(root)).toBe(cores);
});
