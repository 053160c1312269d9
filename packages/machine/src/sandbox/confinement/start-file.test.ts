import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../../testing.ts";
import { startFile, startFiles } from "./start-file.ts";

function written(env: Record<string, string>): string {
  const dir = temporaryDirectory();
  for (const [file, text] of Object.entries(startFiles(env, dir))) writeFileSync(file, text);
  return dir + startFile;
}

test("no variable is on a command line, where every user of the machine could read it", () => {
  const env = { "a.b-c": "secret-value", UID: "secret-value", PLAIN: "secret-value" };
  const file = written({ PATH: "/usr/bin:/bin", ...env });
  // What the script starts is what others see of it.
  const text = execFileSync("/bin/sh", ["-x", file, "exec", "/", "cat", "/proc/self/environ"], {
    stdio: ["ignore", "pipe", "pipe"],
  }).toString();
  expect(text.match(/secret-value/g)).toHaveLength(3);
  const script = Object.entries(startFiles(env)).find(([name]) => name === startFile)?.[1] ?? "";
  for (const line of script.split("\n").filter((each) => each.includes("exec ")))
    expect(line).not.toContain("secret-value");
});

test.each([
  { name: "quotes and lines", env: { TEXT: 'it\'s "so"\n$HOME `id`' } },
  { name: "names that are none for a shell", env: { "a.b-c": "x", "1": "y" } },
  { name: "names that shells use themselves", env: { UID: "7", IFS: "x", PS4: "y", how: "z" } },
  { name: "what helpers are not given", env: { LD_LIBRARY_PATH: "/x", BASH_ENV: "/y" } },
  { name: "nothing", env: {} },
])("a program gets exactly its environment: $name", ({ env }) => {
  const file = written({ PATH: "/usr/bin:/bin", ...env });
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
  const file = written({ PATH: "/usr/bin:/bin" });
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
