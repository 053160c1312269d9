import { spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import path from "node:path";
import { cacheDir } from "../real-apiserver/binaries.ts";

const version = "37.0.2";

/** Python with the official client, in an environment of its own in the user's cache. */
export function pythonWithClient(): string {
  return path.join(directory(), "bin", "python");
}

function directory(): string {
  return path.join(path.dirname(cacheDir()), "foreign-tools", `python-client-${version}`);
}

/** Makes it unless it is there; says so and goes on where there is no Python. Throws when the client cannot be installed. */
export function installPythonClient(): void {
  if (existsSync(pythonWithClient())) return;
  if (spawnSync("python3", ["-m", "venv", directory()], { stdio: "ignore" }).status !== 0) {
    console.error("no python3 with venv: tests with the Python client skip");
    rmSync(directory(), { recursive: true, force: true });
    return;
  }
  console.error("installing the Python client; this happens once ...");
  const pip = ["-m", "pip", "install", "--quiet", `kubernetes==${version}`];
  const { status } = spawnSync(pythonWithClient(), pip, { stdio: ["ignore", 2, 2] });
  if (status === 0) return;
  rmSync(directory(), { recursive: true, force: true });
  throw new Error(`installing the Python client: pip ended with ${status}`);
}
