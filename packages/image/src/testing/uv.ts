/** uv for tests, which few machines have. */
import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const version = "0.13.9";

/** The directory of its program, got from the package index into `directory`; undefined where that is not possible. */
export function installUv(directory = mkdtempSync(join(tmpdir(), "spry-uv-"))): string | undefined {
  const target = join(directory, "uv");
  const options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"];
  try {
    execFileSync("pip", ["install", ...options, `--target=${target}`, `uv==${version}`], {
      timeout: 60_000,
      stdio: "ignore",
    });
    return join(target, "bin");
  } catch {
    return undefined;
  }
}
