import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { systemClock } from "@spry/kube";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../../testing.ts";
import { Cgroups } from "./cgroups.ts";

/** A tree with the files that the kernel has (Documentation/admin-guide/cgroup-v2.rst). */
function treeWith(files: Record<string, string>): string {
  const root = temporaryDirectory();
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
  }
  return root;
}

test.each([
  {
    version: 2,
    files: {
      "cgroup.controllers": "cpu memory pids\n",
      "spry/c1/cpu.stat": "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n",
      "spry/c1/memory.current": "9000\n",
      "spry/c1/memory.stat": "anon 1\nfile 2\ninactive_file 1000\n",
      "spry/c1/memory.events": "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n",
    },
  },
  {
    version: 1,
    files: {
      "cpuacct/spry/c1/cpuacct.usage": "1500000\n",
      "memory/spry/c1/memory.usage_in_bytes": "9000\n",
      "memory/spry/c1/memory.stat": "cache 5\ntotal_inactive_file 1000\n",
      "memory/spry/c1/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    },
  },
])("version $version: use, kills and containers are read from the trees", ({ version, files }) => {
  const cgroups = new Cgroups("spry", systemClock, treeWith(files));
  expect(cgroups.version).toBe(version);
  expect(cgroups.usage("c1")).toEqual({ cpuNanoseconds: 1_500_000, memoryBytes: 8000 });
  expect([cgroups.oomKills("c1"), cgroups.oomKills("gone")]).toEqual([2, 0]);
  expect(cgroups.usage("gone")).toBeUndefined();
  expect(cgroups.list()).toEqual(["c1"]);
});
