import { type Confinement } from "./confinement.ts";

const network = "Pods share this machine's network, with what listens on its loopback addresses";

/** After `process://`, where Kubernetes shows a node's container runtime. */
export function nameOf(confinement: Confinement | string, hasUsers: boolean): string {
  if (typeof confinement === "string") return hasUsers ? "users" : "not-isolated";
  return confinement.kind === "root" ? "namespaces" : "user-namespaces";
}

/**
 * What is kept apart and what is not: one sentence. A string is the reason why namespaces are missing; `hasUsers`: Pods
 * have users of their own then.
 */
export function isolationOf(confinement: Confinement | string, hasUsers: boolean): string {
  if (typeof confinement === "string" && hasUsers)
    return (
      `each Pod runs as a user of its own without privileges, who cannot read the platform's keys or other Pods' files and ` +
      `environments; it sees all processes and what every user of this machine can read, because ` +
      `${confinement}; ${network}`
    );
  if (typeof confinement === "string")
    return (
      `Pods are plain processes of the user ${userName()}, because ${confinement}: each can read and change what ` +
      `that user can, including this platform's keys and other Pods' files, environments and processes, and shares ` +
      `this machine's network`
    );
  const user =
    confinement.kind === "root" ? "a user of its own" : "this user without any privilege";
  return `each container has file system, processes and IPC of its own and runs as ${user}; ${network}`;
}

function userName(): string {
  const uid = process.getuid?.();
  return uid === 0 ? "root" : uid === undefined ? "that runs the platform" : String(uid);
}
