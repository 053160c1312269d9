import {
  type Check,
  type CheckedPod,
  containers,
  containersOf,
  namesWhere,
  ordered,
  plural,
  quoted,
  setters,
  type Violation,
} from "./checked-pod.ts";
import { isAllowedSeccomp, seccompSetters, unmaskedProc } from "./shared-checks.ts";

function allowPrivilegeEscalation(pod: CheckedPod): Violation | undefined {
  const names = namesWhere(pod, (context) => context.allowPrivilegeEscalation !== false);
  if (names.length === 0) return undefined;
  return {
    reason: "allowPrivilegeEscalation != false",
    detail: `${containers(names)} must set securityContext.allowPrivilegeEscalation=false`,
  };
}

function capabilities(pod: CheckedPod): Violation | undefined {
  const isBad = (name: string) => name !== "NET_BIND_SERVICE";
  const keeping = namesWhere(pod, ({ capabilities: own }) => !own?.drop?.includes("ALL"));
  const adding = namesWhere(pod, ({ capabilities: own }) => own?.add?.some(isBad) ?? false);
  const added = containersOf(pod).flatMap(
    ({ securityContext }) => securityContext?.capabilities?.add?.filter(isBad) ?? [],
  );
  const told = [
    ...(keeping.length > 0
      ? [`${containers(keeping)} must set securityContext.capabilities.drop=["ALL"]`]
      : []),
    ...(adding.length > 0
      ? [
          `${containers(adding)} must not include ${quoted(ordered(added))} in securityContext.capabilities.add`,
        ]
      : []),
  ];
  return told.length > 0
    ? { reason: "unrestricted capabilities", detail: told.join("; ") }
    : undefined;
}

const allowedVolumes = [
  "configMap",
  "csi",
  "downwardAPI",
  "emptyDir",
  "ephemeral",
  "image",
  "persistentVolumeClaim",
  "projected",
  "secret",
];
const knownVolumes = new Set(
  "hostPath gcePersistentDisk awsElasticBlockStore gitRepo nfs iscsi glusterfs rbd flexVolume cinder cephfs flocker fc azureFile vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO storageos".split(
    " ",
  ),
);

function restrictedVolumes({ spec }: CheckedPod): Violation | undefined {
  const bad = (spec?.volumes ?? []).filter(
    (volume) => !allowedVolumes.some((type) => volume[type]),
  );
  if (bad.length === 0) return undefined;
  const types = ordered(
    bad.map((volume) => Object.keys(volume).find((key) => knownVolumes.has(key)) ?? "unknown"),
  );
  const names = `${plural("volume", bad.length)} ${quoted(bad.map(({ name }) => name))}`;
  const uses = bad.length === 1 ? "uses" : "use";
  return {
    reason: "restricted volume types",
    detail: `${names} ${uses} ${plural("restricted volume type", types.length)} ${quoted(types)}`,
  };
}

function runAsNonRoot(pod: CheckedPod): Violation | undefined {
  const reason = "runAsNonRoot != true";
  const own = pod.spec?.securityContext?.runAsNonRoot;
  const who = setters(
    own === false,
    namesWhere(pod, (context) => context.runAsNonRoot === false),
  );
  if (who) return { reason, detail: `${who} must not set securityContext.runAsNonRoot=false` };
  const silent = own ? [] : namesWhere(pod, (context) => context.runAsNonRoot === undefined);
  if (silent.length === 0) return undefined;
  return {
    reason,
    detail: `pod or ${containers(silent)} must set securityContext.runAsNonRoot=true`,
  };
}

function runAsUser(pod: CheckedPod): Violation | undefined {
  const who = setters(
    pod.spec?.securityContext?.runAsUser === 0,
    namesWhere(pod, (context) => context.runAsUser === 0),
  );
  return who ? { reason: "runAsUser=0", detail: `${who} must not set runAsUser=0` } : undefined;
}

function seccompProfile(pod: CheckedPod): Violation | undefined {
  const set = seccompSetters(pod);
  if (set) return set;
  if (isAllowedSeccomp(pod.spec?.securityContext?.seccompProfile?.type)) return undefined;
  const silent = namesWhere(pod, (context) => context.seccompProfile === undefined);
  if (silent.length === 0) return undefined;
  return {
    reason: "seccompProfile",
    detail: `pod or ${containers(silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`,
  };
}

/** What has no meaning on Windows, where these fields cannot be set. */
const exceptOnWindows =
  (check: Check["check"]): Check["check"] =>
  (pod) =>
    pod.spec?.os?.name === "windows" ? undefined : check(pod);

/** Root in a user namespace of its own has no rights outside of it. */
const exceptWithOwnUsers =
  (check: Check["check"]): Check["check"] =>
  (pod) =>
    pod.spec?.hostUsers === false ? undefined : check(pod);

/** What the level `restricted` adds to `baseline`. */
export const restrictedChecks: Check[] = [
  { id: "allowPrivilegeEscalation", since: 8, until: 25, check: allowPrivilegeEscalation },
  { id: "allowPrivilegeEscalation", since: 25, check: exceptOnWindows(allowPrivilegeEscalation) },
  {
    id: "capabilities_restricted",
    since: 22,
    until: 25,
    overrides: "capabilities_baseline",
    check: capabilities,
  },
  {
    id: "capabilities_restricted",
    since: 25,
    overrides: "capabilities_baseline",
    check: exceptOnWindows(capabilities),
  },
  { id: "procMount_restricted", since: 35, overrides: "procMount", check: unmaskedProc },
  { id: "restrictedVolumes", since: 0, overrides: "hostPathVolumes", check: restrictedVolumes },
  { id: "runAsNonRoot", since: 0, until: 35, check: runAsNonRoot },
  { id: "runAsNonRoot", since: 35, check: exceptWithOwnUsers(runAsNonRoot) },
  { id: "runAsUser", since: 23, until: 35, check: runAsUser },
  { id: "runAsUser", since: 35, check: exceptWithOwnUsers(runAsUser) },
  {
    id: "seccompProfile_restricted",
    since: 19,
    until: 25,
    overrides: "seccompProfile_baseline",
    check: seccompProfile,
  },
  {
    id: "seccompProfile_restricted",
    since: 25,
    overrides: "seccompProfile_baseline",
    check: exceptOnWindows(seccompProfile),
  },
];
