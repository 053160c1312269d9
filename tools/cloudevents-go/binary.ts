import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import path from "node:path";
import { cacheDir } from "../real-apiserver/binaries.ts";

const moduleDir = import.meta.dirname;

/** The program in the user's cache, under a name that changes with its source and the SDK's version. */
export function cloudEventsProgram(): string {
  const hash = createHash("sha256");
  for (const name of ["main.go", "go.mod"]) hash.update(readFileSync(path.join(moduleDir, name)));
  const version = hash.digest("hex").slice(0, 12);
  return path.join(path.dirname(cacheDir()), "foreign-tools", `cloudevents-go-${version}`);
}

/** Builds it unless it is there; Go's own output goes to stderr. Throws when there is no Go or it fails. */
export function buildCloudEventsProgram(): void {
  const program = cloudEventsProgram();
  if (existsSync(program)) return;
  mkdirSync(path.dirname(program), { recursive: true });
  console.error("building a program with the CloudEvents SDK for Go; this happens once ...");
  const partial = `${program}.${process.pid}.new`;
  const go = ["go", "build", "-mod=readonly", "-p", "1", "-trimpath", "-o", partial, "."];
  const { status, error } = spawnSync("nice", ["-n", "19", ...go], {
    cwd: moduleDir,
    env: { ...process.env, CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-buildvcs=false" },
    stdio: ["ignore", 2, 2],
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`building with the CloudEvents SDK: go ended with ${status}`);
  renameSync(partial, program);
}
