import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../../testing.ts";
import { startScript } from "./start-file.ts";

test.each([
  { name: "quotes and lines", env: { TEXT: 'it\'s "so"\n$HOME `id`' } },
  { name: "names that are none for a shell", env: { "a.b-c": "x", "1": "y" } },
  { name: "names that shells use themselves", env: { UID: "7", IFS: "x", PS4: "y", how: "z" } },
  { name: "what helpers are not given", env: { LD_LIBRARY_PATH: "/x", BASH_ENV: "/y" } },
  { name: "nothing", env: {} },
])("a program gets exactly its environment: $name", ({ env }) => {
  const file = path.join(temporaryDirectory(), "start");
  writeFileSync(file, startScript({ PATH: "/usr/bin:/bin", ...env }));
  for (const how of ["run", "exec"]) {
    const text = execFileSync("/bin/sh", [file, how, "/", "env", "-0"], {
      env: { PATH: "/usr/bin:/bin", SPRY_ROOT: "/x" },
      encoding: "utf8",
    });
    const got = text
      .split("\0")
      .filter(Boolean)
      .filter((entry) => !entry.startsWith("_="));
    const wanted = Object.entries({ PATH: "/usr/bin:/bin", ...env });
    expect(got.sort()).toEqual(wanted.map(([name, value]) => `${name}=${value}`).sort());
  }
});

test("a program's exit code and its output are its own, and its end by a signal is not commented", () => {
  const file = path.join(temporaryDirectory(), "start");
  writeFileSync(file, startScript({ PATH: "/usr/bin:/bin" }));
  const run = (script: string) => {
    const argv = [
      "-c",
      `"$0" "$@" 2>&1; echo " $?"`,
      "/bin/sh",
      file,
      "run",
      "/",
      "sh",
      "-c",
      script,
    ];
    return execFileSync("/bin/sh", argv, { encoding: "utf8" });
  };
  expect(run("echo out; echo errors >&2; exit 7")).toBe("out\nerrors\n 7\n");
  expect(run("kill -TERM $$")).toBe(" 143\n");
});
