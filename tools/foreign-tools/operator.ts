import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { cacheDir } from "../real-apiserver/binaries.ts";

const source = path.join(import.meta.dirname, "operator");

/** Where the operator's tests run: they read their manifests from there. */
export const operatorDirectory = source;

/** The operator's tests as a program, kept in the user's cache under a name that changes with its Go files. */
export function operatorTests(): string {
  const hash = createHash("sha256");
  for (const name of readdirSync(source).sort()) {
    if (/\.(?:go|mod|sum)$/.test(name)) hash.update(readFileSync(path.join(source, name)));
  }
  const name = `operator-${hash.digest("hex").slice(0, 12)}.test`;
  return path.join(path.dirname(cacheDir()), "foreign-tools", name);
}

/** Builds it unless it is there; Go's own output goes to stderr. Throws when there is no Go or it fails. */
export function buildOperatorTests(): void {
  const binary = operatorTests();
  if (existsSync(binary)) return;
  mkdirSync(path.dirname(binary), { recursive: true });
  console.error("building the operator's tests; this happens once ...");
  const go = ["go", "test", "-c", "-mod=readonly", "-p", "1", "-trimpath", "-o", binary, "."];
  const { status, error } = spawnSync("nice", ["-n", "19", ...go], {
    cwd: source,
    env: { ...process.env, CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-buildvcs=false" },
    stdio: ["ignore", 2, 2],
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`building the operator's tests: go ended with ${status}`);
}
