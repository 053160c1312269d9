import { spawnSync } from "node:child_process";
import { networkInterfaces } from "node:os";

let hasOci: boolean | undefined;

/** In which sandbox a local platform of the tests runs Pods: the named one, or the one that it takes by itself here. */
export function testedSandbox(): "oci" | "process" {
  const named = process.env["SPRY_TEST_SANDBOX"];
  if (named === "oci" || named === "process") return named;
  hasOci ??= process.platform === "linux" && process.getuid?.() === 0 && hasRuntime();
  return hasOci ? "oci" : "process";
}

/** An OCI runtime, also in administrators' directories. */
export function hasRuntime(): boolean {
  const PATH = `${process.env["PATH"]}:/usr/sbin:/usr/local/sbin`;
  return spawnSync("sh", ["-c", "command -v runc crun"], { env: { PATH } }).stdout.length > 0;
}

/** Where Pods of a local platform reach this machine: in `oci` their loopback is their own. */
export function hostAddress(): string {
  if (testedSandbox() === "process") return "127.0.0.1";
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return all.find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? "127.0.0.1";
}
