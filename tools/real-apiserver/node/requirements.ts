/** Whether this machine can be a node, and what to do when it cannot. */
import { accessSync, constants, existsSync } from "node:fs";
import path from "node:path";
import { missingPrograms, nodePrograms } from "../binaries.ts";

/** Debian's packages for what a node needs of the machine. */
const tools = {
  containerd: "containerd",
  "containerd-shim-runc-v2": "containerd",
  ctr: "containerd",
  runc: "runc",
  iptables: "iptables",
  ip: "iproute2",
  unshare: "util-linux",
  nsenter: "util-linux",
  mount: "mount",
  tar: "tar",
};
const cniDirs = ["/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"];
const cniPlugins = ["bridge", "host-local", "loopback", "portmap"];

/** Where the CNI plugins are; undefined when one of them is nowhere. */
export function cniDir(): string | undefined {
  return cniDirs.find((dir) => cniPlugins.every((name) => existsSync(path.join(dir, name))));
}

/** Why there can be no node here, as the end of a sentence; undefined when there can. */
export function whyNoNode(): string | undefined {
  if (process.platform !== "linux") return "a node needs Linux";
  if (process.getuid?.() !== 0) return "a node needs root";
  const missing = new Set<string>(
    Object.entries(tools).flatMap(([name, source]) => (onPath(name) ? [] : [source])),
  );
  if (!cniDir()) missing.add("containernetworking-plugins");
  if (missing.size > 0) return `these Debian packages are missing: ${[...missing].join(" ")}`;
  const unbuilt = missingPrograms(nodePrograms);
  if (unbuilt.length > 0) {
    return `${unbuilt.join()} not built (npm run real-apiserver -- build --node)`;
  }
  return undefined;
}

function onPath(name: string): boolean {
  return (process.env["PATH"] ?? "").split(path.delimiter).some((dir) => {
    try {
      accessSync(path.join(dir, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
