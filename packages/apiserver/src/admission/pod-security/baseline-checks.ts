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
import { seccompSetters, unmaskedProc } from "./shared-checks.ts";

const allowedCapabilities = new Set(
  "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT".split(
    " ",
  ),
);
const appArmorPrefix = "container.apparmor.security.beta.kubernetes.io/";
const seccompPod = "seccomp.security.alpha.kubernetes.io/pod";
const seccompContainer = "container.seccomp.security.alpha.kubernetes.io/";

function appArmorProfile(pod: CheckedPod): Violation | undefined {
  const isBad = (type: string | undefined) => type !== "RuntimeDefault" && type !== "Localhost";
  const own = pod.spec?.securityContext?.appArmorProfile;
  const isPodBad = own !== undefined && isBad(own.type);
  const names = namesWhere(
    pod,
    ({ appArmorProfile: profile }) => profile !== undefined && isBad(profile.type),
  );
  const types = containersOf(pod)
    .map(({ securityContext }) => securityContext?.appArmorProfile)
    .filter((profile) => profile !== undefined && isBad(profile.type))
    .map((profile) => profile?.type);
  const annotations = Object.entries(pod.metadata?.annotations ?? {})
    .filter(([key, value]) => key.startsWith(appArmorPrefix) && !isAllowedAppArmor(value))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .sort();
  const who = [setters(isPodBad, names)].filter((each) => each !== undefined);
  if (annotations.length > 0) who.push(plural("annotation", annotations.length));
  if (who.length === 0) return undefined;
  const values = [...ordered([...(isPodBad ? [own.type] : []), ...types]), ...annotations];
  return {
    reason: plural("forbidden AppArmor profile", values.length),
    detail: `${who.join(" and ")} must not set AppArmor profile type to ${quoted(values)}`,
  };
}

function isAllowedAppArmor(value: string): boolean {
  return value === "" || value === "runtime/default" || value.startsWith("localhost/");
}

function capabilities(pod: CheckedPod): Violation | undefined {
  const isBad = (name: string) => !allowedCapabilities.has(name);
  const names = namesWhere(pod, ({ capabilities: own }) => own?.add?.some(isBad) ?? false);
  if (names.length === 0) return undefined;
  const added = containersOf(pod).flatMap(
    ({ securityContext }) => securityContext?.capabilities?.add?.filter(isBad) ?? [],
  );
  return {
    reason: "non-default capabilities",
    detail: `${containers(names)} must not include ${quoted(ordered(added))} in securityContext.capabilities.add`,
  };
}

function hostNamespaces({ spec }: CheckedPod): Violation | undefined {
  const set = (["hostNetwork", "hostPID", "hostIPC"] as const).filter((field) => spec?.[field]);
  if (set.length === 0) return undefined;
  return { reason: "host namespaces", detail: set.map((field) => `${field}=true`).join(", ") };
}

function hostPathVolumes({ spec }: CheckedPod): Violation | undefined {
  const names = (spec?.volumes ?? []).filter((each) => each.hostPath).map(({ name }) => name);
  if (names.length === 0) return undefined;
  return {
    reason: "hostPath volumes",
    detail: `${plural("volume", names.length)} ${quoted(names)}`,
  };
}

function hostPorts(pod: CheckedPod): Violation | undefined {
  const names = namesWhere(pod, (_, { ports }) => ports?.some(({ hostPort }) => hostPort) ?? false);
  if (names.length === 0) return undefined;
  const ports = ordered(
    containersOf(pod).flatMap((each) =>
      (each.ports ?? []).filter(({ hostPort }) => hostPort).map(({ hostPort }) => String(hostPort)),
    ),
  );
  const uses = names.length === 1 ? "uses" : "use";
  return {
    reason: "hostPort",
    detail: `${containers(names)} ${uses} ${plural("hostPort", ports.length)} ${ports.join(", ")}`,
  };
}

function hostProbes(pod: CheckedPod): Violation | undefined {
  const found = containersOf(pod).map((container) => {
    const { livenessProbe, readinessProbe, startupProbe, lifecycle } = container;
    const hosts = [
      livenessProbe,
      readinessProbe,
      startupProbe,
      lifecycle?.postStart,
      lifecycle?.preStop,
    ]
      .flatMap((handler) => [handler?.httpGet?.host, handler?.tcpSocket?.host])
      .filter((host) => host);
    return { name: container.name, hosts };
  });
  const names = ordered(found.filter(({ hosts }) => hosts.length > 0).map(({ name }) => name));
  if (names.length === 0) return undefined;
  const hosts = ordered(found.flatMap((each) => each.hosts));
  const uses = names.length === 1 ? "uses" : "use";
  return {
    reason: "probe or lifecycle host",
    detail: `${containers(names)} ${uses} ${plural("probe or lifecycle host", hosts.length)} ${quoted(hosts)}`,
  };
}

function privileged(pod: CheckedPod): Violation | undefined {
  const names = namesWhere(pod, (context) => context.privileged === true);
  if (names.length === 0) return undefined;
  return {
    reason: "privileged",
    detail: `${containers(names)} must not set securityContext.privileged=true`,
  };
}

const seLinuxTypes = ["", "container_t", "container_init_t", "container_kvm_t"];

function seLinuxOptions(types: readonly string[]): Check["check"] {
  return (pod) => {
    const own = pod.spec?.securityContext?.seLinuxOptions;
    const all = [own, ...containersOf(pod).map((each) => each.securityContext?.seLinuxOptions)];
    type Options = typeof own;
    const isBad = (options: Options) =>
      options !== undefined &&
      (!types.includes(options.type ?? "") || Boolean(options.user) || Boolean(options.role));
    const who = setters(
      isBad(own),
      namesWhere(pod, (context) => isBad(context.seLinuxOptions)),
    );
    if (!who) return undefined;
    const badTypes = ordered(
      all.flatMap((each) => (each && !types.includes(each.type ?? "") ? [each.type] : [])),
    );
    const found = [
      ...(badTypes.length > 0 ? [`${plural("type", badTypes.length)} ${quoted(badTypes)}`] : []),
      ...(all.some((each) => each?.user) ? ["user may not be set"] : []),
      ...(all.some((each) => each?.role) ? ["role may not be set"] : []),
    ];
    return {
      reason: "seLinuxOptions",
      detail: `${who} set forbidden securityContext.seLinuxOptions: ${found.join("; ")}`,
    };
  };
}

function seccompAnnotations(pod: CheckedPod): Violation | undefined {
  const { annotations = {} } = pod.metadata ?? {};
  const keys = [seccompPod, ...containersOf(pod).map(({ name }) => seccompContainer + name)];
  const bad = keys.filter((key) => {
    const value = annotations[key];
    if (value === undefined) return false;
    return (
      value !== "runtime/default" && value !== "docker/default" && !value.startsWith("localhost/")
    );
  });
  if (bad.length === 0) return undefined;
  const found = ordered(bad.map((key) => `${key}=${JSON.stringify(annotations[key])}`));
  return {
    reason: "seccompProfile",
    detail: `forbidden ${plural("annotation", found.length)} ${found.join(", ")}`,
  };
}

const oldSysctls = [
  "kernel.shm_rmid_forced",
  "net.ipv4.ip_local_port_range",
  "net.ipv4.tcp_syncookies",
  "net.ipv4.ping_group_range",
  "net.ipv4.ip_unprivileged_port_start",
];
const reserved = "net.ipv4.ip_local_reserved_ports";
const keepalive = [
  "net.ipv4.tcp_keepalive_time",
  "net.ipv4.tcp_fin_timeout",
  "net.ipv4.tcp_keepalive_intvl",
  "net.ipv4.tcp_keepalive_probes",
];
const buffers = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];

function sysctls(...allowed: string[]): Check["check"] {
  return ({ spec }) => {
    const set = (spec?.securityContext?.sysctls ?? []).map(({ name }) => name);
    const bad = set.filter((name) => !allowed.includes(name));
    return bad.length > 0 ? { reason: "forbidden sysctls", detail: bad.join(", ") } : undefined;
  };
}

function windowsHostProcess(pod: CheckedPod): Violation | undefined {
  const isPodBad = pod.spec?.securityContext?.windowsOptions?.hostProcess === true;
  const names = namesWhere(pod, ({ windowsOptions }) => windowsOptions?.hostProcess === true);
  const who = setters(isPodBad, names);
  if (!who) return undefined;
  return {
    reason: "hostProcess",
    detail: `${who} must not set securityContext.windowsOptions.hostProcess=true`,
  };
}

/** The level `baseline` (`k8s.io/pod-security-admission/policy`), in the order in which violations are reported. */
export const baselineChecks: Check[] = [
  { id: "appArmorProfile", since: 0, check: appArmorProfile },
  { id: "capabilities_baseline", since: 0, check: capabilities },
  { id: "hostNamespaces", since: 0, check: hostNamespaces },
  { id: "hostPathVolumes", since: 0, check: hostPathVolumes },
  { id: "hostPorts", since: 0, check: hostPorts },
  { id: "hostProbesAndHostLifecycle", since: 34, check: hostProbes },
  { id: "privileged", since: 0, check: privileged },
  { id: "procMount", since: 0, until: 35, check: unmaskedProc },
  {
    id: "procMount",
    since: 35,
    check: (pod) => (pod.spec?.hostUsers === false ? undefined : unmaskedProc(pod)),
  },
  { id: "seLinuxOptions", since: 0, until: 31, check: seLinuxOptions(seLinuxTypes) },
  {
    id: "seLinuxOptions",
    since: 31,
    check: seLinuxOptions([...seLinuxTypes, "container_engine_t"]),
  },
  { id: "seccompProfile_baseline", since: 0, until: 19, check: seccompAnnotations },
  { id: "seccompProfile_baseline", since: 19, check: seccompSetters },
  { id: "sysctls", since: 0, until: 27, check: sysctls(...oldSysctls) },
  { id: "sysctls", since: 27, until: 29, check: sysctls(...oldSysctls, reserved) },
  { id: "sysctls", since: 29, until: 32, check: sysctls(...oldSysctls, reserved, ...keepalive) },
  { id: "sysctls", since: 32, check: sysctls(...oldSysctls, reserved, ...keepalive, ...buffers) },
  { id: "windowsHostProcess", since: 0, check: windowsHostProcess },
];
