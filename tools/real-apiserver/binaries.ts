/** The programs of a real cluster, built from their Go modules and kept in the user's cache. */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { Problem } from "./problem.ts";

const moduleDir = import.meta.dirname;

/** Each program and the Go package it is; go.mod lists those with a path of their own as its tools. */
export const programs = {
  etcd: "go.etcd.io/etcd/server/v3",
  "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
  "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
  "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
  kubelet: "k8s.io/kubernetes/cmd/kubelet",
  "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
  // Of the same module, so that what it has in common with the others is compiled once.
  kubectl: "k8s.io/kubernetes/cmd/kubectl",
  // Modules of their own, below this one: what they need must not decide the versions of the others.
  coredns: "./coredns",
  pause: "./pause",
} as const;

export type Program = keyof typeof programs;

export const controlPlanePrograms = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
] as const satisfies Program[];

/** What a node needs besides, to be built; `needOfNode` is what has to be on the machine. */
export const nodePrograms = [
  "kubelet",
  "kube-proxy",
  "coredns",
  "pause",
] as const satisfies Program[];

/** `$XDG_CACHE_HOME/spry/real-apiserver`; a relative value counts as none (XDG base directory specification). */
export function cacheDir(): string {
  const base = process.env["XDG_CACHE_HOME"] ?? "";
  return path.join(
    path.isAbsolute(base) ? base : path.join(homedir(), ".cache"),
    "spry",
    "real-apiserver",
  );
}

/** The versions that go.mod pins, with their `v`. */
export function versions(): { kubernetes: string; etcd: string; go: string } {
  const text = readFileSync(path.join(moduleDir, "go.mod"), "utf8");
  const pinned = (pattern: RegExp): string => {
    const version = pattern.exec(text)?.[1];
    if (!version) throw new Error(`reading tools/real-apiserver/go.mod: no match for ${pattern}`);
    return version;
  };
  return {
    kubernetes: pinned(/^\s*k8s\.io\/kubernetes (v\S+)/m),
    etcd: pinned(/^\s*go\.etcd\.io\/etcd\/server\/v3 (v\S+)/m),
    go: pinned(/^go (\S+)/m),
  };
}

export function binaryOf(program: Program): string {
  const { kubernetes, etcd } = versions();
  return path.join(cacheDir(), `kubernetes-${kubernetes}-etcd-${etcd}`, program);
}

export function missingPrograms(of: readonly Program[] = controlPlanePrograms): Program[] {
  return of.filter((program) => !existsSync(binaryOf(program)));
}

/** Builds what is not cached yet, one program after the other; Go's own output goes to stderr. */
export async function buildMissing(
  signal: AbortSignal,
  of: readonly Program[] = controlPlanePrograms,
): Promise<void> {
  for (const program of missingPrograms(of)) {
    const begin = performance.now();
    console.error(`building ${program} (${programs[program]}); this happens once ...`);
    await build(program, signal);
    console.error(`built ${program} in ${Math.round((performance.now() - begin) / 1000)} s`);
  }
}

/**
 * One package at a time at the lowest priority: a build is minutes of compiling, and whoever shares the
 * machine should not notice. Without cgo the result depends on no library of the host.
 */
async function build(program: Program, signal: AbortSignal): Promise<void> {
  const binary = binaryOf(program);
  const fresh = `${binary}.${process.pid}.new`;
  mkdirSync(path.dirname(binary), { recursive: true });
  const go = ["go", "build", "-mod=readonly", "-p", "1", "-trimpath", `-ldflags=${linkerFlags()}`];
  const source = programs[program];
  const [cwd, target] = source.startsWith("./")
    ? [path.join(moduleDir, source), "."]
    : [moduleDir, source];
  const child = spawn("nice", ["-n", "19", ...go, "-o", fresh, target], {
    cwd,
    env: { ...process.env, CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-buildvcs=false" },
    stdio: ["ignore", 2, 2],
    signal,
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", resolve);
  });
  // What nice(1) answers when there is no such command.
  if (code === 127) {
    throw new Problem(
      `building ${program}: the command go was not found`,
      `install Go ${versions().go} or newer (https://go.dev/doc/install), or set KUBECONFIG and add --use-current`,
    );
  }
  if (code !== 0) {
    throw new Problem(
      `building ${program}: go build ended with ${code}`,
      `see its output above; Go ${versions().go} or newer and a reachable module proxy are needed`,
    );
  }
  renameSync(fresh, binary);
}

/** Without a version the server would call itself v0.0.0-master, and clients decide by what it says. */
function linkerFlags(): string {
  const { kubernetes } = versions();
  const [major, minor] = kubernetes.slice(1).split(".");
  const stamped = { gitVersion: kubernetes, gitMajor: major, gitMinor: minor };
  const stamps = Object.entries(stamped).map(
    ([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`,
  );
  return ["-s", "-w", ...stamps].join(" ");
}
