import { type ObjectMeta } from "@spry/kube";

interface SecurityContext {
  privileged?: boolean;
  allowPrivilegeEscalation?: boolean;
  runAsNonRoot?: boolean;
  runAsUser?: number;
  procMount?: string;
  capabilities?: { add?: string[]; drop?: string[] };
  seccompProfile?: { type?: string };
  appArmorProfile?: { type?: string };
  seLinuxOptions?: { type?: string; user?: string; role?: string };
  windowsOptions?: { hostProcess?: boolean };
  sysctls?: { name: string }[];
}

interface Handler {
  httpGet?: { host?: string };
  tcpSocket?: { host?: string };
}

/** Of a container, what Pod Security looks at. */
export interface CheckedContainer {
  name: string;
  image?: string;
  securityContext?: SecurityContext;
  ports?: { hostPort?: number }[];
  livenessProbe?: Handler;
  readinessProbe?: Handler;
  startupProbe?: Handler;
  lifecycle?: { postStart?: Handler; preStop?: Handler };
}

/** Of a Pod or a template. */
export interface CheckedPod {
  metadata?: ObjectMeta;
  spec?: {
    containers?: CheckedContainer[];
    initContainers?: CheckedContainer[];
    ephemeralContainers?: CheckedContainer[];
    volumes?: ({ name: string } & Record<string, unknown>)[];
    securityContext?: SecurityContext;
    hostNetwork?: boolean;
    hostPID?: boolean;
    hostIPC?: boolean;
    hostUsers?: boolean;
    os?: { name?: string };
  };
}

/** Why a Pod is not allowed; of Pods that exist already, only the reason is reported. */
export interface Violation {
  reason: string;
  detail: string;
}

/** One rule of a level, from one minor release until another. */
export interface Check {
  id: string;
  since: number;
  until?: number;
  /** The check of the weaker level that it stands for. */
  overrides?: string;
  check: (pod: CheckedPod) => Violation | undefined;
}

export function containersOf({ spec }: CheckedPod): CheckedContainer[] {
  return [
    ...(spec?.initContainers ?? []),
    ...(spec?.containers ?? []),
    ...(spec?.ephemeralContainers ?? []),
  ];
}

/** Names of the containers for which something holds. */
export function namesWhere(
  pod: CheckedPod,
  isBad: (context: SecurityContext, container: CheckedContainer) => boolean,
): string[] {
  return containersOf(pod)
    .filter((container) => isBad(container.securityContext ?? {}, container))
    .map(({ name }) => name);
}

export function quoted(items: readonly string[]): string {
  return items.map((each) => `"${each}"`).join(", ");
}

/** Without repetitions, in order. */
export function ordered(items: readonly (string | undefined)[]): string[] {
  return [...new Set(items.map((each) => each ?? ""))].sort();
}

export function plural(word: string, count: number): string {
  return count === 1 ? word : `${word}s`;
}

/** `container "a"`, `containers "a", "b"`. */
export function containers(names: readonly string[]): string {
  return `${plural("container", names.length)} ${quoted(names)}`;
}

/** `pod and container "a"`: which of them set what they must not; undefined when none does. */
export function setters(isPodBad: boolean, names: readonly string[]): string | undefined {
  const all = [...(isPodBad ? ["pod"] : []), ...(names.length > 0 ? [containers(names)] : [])];
  return all.length > 0 ? all.join(" and ") : undefined;
}
