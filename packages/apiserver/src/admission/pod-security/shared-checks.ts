import {
  type CheckedPod,
  containers,
  containersOf,
  namesWhere,
  ordered,
  quoted,
  setters,
  type Violation,
} from "./checked-pod.ts";

export function isAllowedSeccomp(type: string | undefined): boolean {
  return type === "RuntimeDefault" || type === "Localhost";
}

/** Who sets a seccomp profile that is none. */
export function seccompSetters(pod: CheckedPod): Violation | undefined {
  const own = pod.spec?.securityContext?.seccompProfile;
  const isPodBad = own !== undefined && !isAllowedSeccomp(own.type);
  const isBad = (profile: typeof own) => profile !== undefined && !isAllowedSeccomp(profile.type);
  const who = setters(
    isPodBad,
    namesWhere(pod, ({ seccompProfile }) => isBad(seccompProfile)),
  );
  if (!who) return undefined;
  const types = containersOf(pod)
    .map(({ securityContext }) => securityContext?.seccompProfile)
    .filter(isBad)
    .map((profile) => profile?.type);
  const values = ordered([...(isPodBad ? [own.type] : []), ...types]);
  return {
    reason: "seccompProfile",
    detail: `${who} must not set securityContext.seccompProfile.type to ${quoted(values)}`,
  };
}

export function unmaskedProc(pod: CheckedPod): Violation | undefined {
  const isBad = (type: string | undefined) => type !== undefined && type !== "Default";
  const names = namesWhere(pod, ({ procMount }) => isBad(procMount));
  if (names.length === 0) return undefined;
  const types = containersOf(pod)
    .map(({ securityContext }) => securityContext?.procMount)
    .filter(isBad);
  return {
    reason: "procMount",
    detail: `${containers(names)} must not set securityContext.procMount to ${quoted(ordered(types))}`,
  };
}
