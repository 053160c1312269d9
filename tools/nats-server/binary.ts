import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import path from "node:path";
import { cacheDir } from "../real-apiserver/binaries.ts";

const moduleDir = import.meta.dirname;

/** The version that go.mod pins, with its `v`. */
export function natsVersion(): string {
  const text = readFileSync(path.join(moduleDir, "go.mod"), "utf8");
  const version = /^\s*github\.com\/nats-io\/nats-server\/v2 (v\S+)/m.exec(text)?.[1];
  if (!version) throw new Error("tools/nats-server/go.mod has no version of nats-server");
  return version;
}

/** nats-server as a program, kept in the user's cache. */
export function natsProgram(): string {
  return path.join(path.dirname(cacheDir()), "nats-server", `nats-server-${natsVersion()}`);
}

/** Why a test that needs it is skipped; undefined when it is there. */
export function whyNoNats(): string | undefined {
  if (existsSync(natsProgram())) return undefined;
  return "nats-server has not been built: `npm run foreign-tools` does that, with Go";
}

/** Builds it unless it is there; Go's own output goes to stderr. Throws when there is no Go or it fails. */
export function buildNatsServer(): void {
  const program = natsProgram();
  if (existsSync(program)) return;
  mkdirSync(path.dirname(program), { recursive: true });
  console.error("building nats-server; this happens once ...");
  const partial = `${program}.${process.pid}.new`;
  const go = ["go", "build", "-mod=readonly", "-p", "1", "-trimpath", "-ldflags=-s -w"];
  const source = "github.com/nats-io/nats-server/v2";
  const { status, error } = spawnSync("nice", ["-n", "19", ...go, "-o", partial, source], {
    cwd: moduleDir,
    env: { ...process.env, CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-buildvcs=false" },
    stdio: ["ignore", 2, 2],
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`building nats-server: go ended with ${status}`);
  renameSync(partial, program);
}
