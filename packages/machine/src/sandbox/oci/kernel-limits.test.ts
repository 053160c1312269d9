import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { silentLogger } from "@spry/kube";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../../testing.ts";
import { raiseUserLimits } from "./kernel-limits.ts";

/** A directory like /proc/sys. */
function limits(values: Record<string, string>) {
  const dir = temporaryDirectory();
  for (const [name, value] of Object.entries(values)) {
    mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
    writeFileSync(path.join(dir, name), value);
  }
  const read = (name: string) => readFileSync(path.join(dir, name), "utf8");
  return { dir, read };
}

test("limits for each user are raised, none is lowered, and what the kernel does not have is left out", () => {
  const { dir, read } = limits({
    "fs/inotify/max_user_instances": "128\n",
    "fs/inotify/max_user_watches": "2000000000\n",
    "fs/pipe-user-pages-soft": "16384\n",
  });
  expect(raiseUserLimits(silentLogger, dir)).toEqual([]);
  expect(read("fs/inotify/max_user_instances")).toBe("1048576");
  expect(read("fs/inotify/max_user_watches")).toBe("2000000000\n");
  expect(read("fs/pipe-user-pages-soft")).toBe("0");
});

test("a limit that cannot be raised is named", () => {
  const { dir } = limits({ "fs/epoll/max_user_watches/x": "" });
  expect(raiseUserLimits(silentLogger, dir)).toEqual(["fs.epoll.max_user_watches"]);
});
