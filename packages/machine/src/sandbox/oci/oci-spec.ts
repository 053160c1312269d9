import path from "node:path";
import { type ContainerSpec, type Isolation } from "../sandbox.ts";
import { type ContainerUser } from "./container-user.ts";
import { userRlimits } from "./kernel-limits.ts";
import { defaultSeccompProfile, type SeccompProfile } from "./seccomp-profile.ts";

export interface OciMount {
  destination: string;
  type: string;
  source: string;
  options: string[];
}

/** The part of the OCI runtime specification (`config.json`, opencontainers/runtime-spec) that is used. */
export interface OciSpec {
  ociVersion: string;
  hostname: string;
  root: { path: string; readonly: boolean };
  process: Record<string, unknown> & { env: string[]; args: string[]; cwd: string };
  mounts: OciMount[];
  linux: Record<string, unknown> & { seccomp?: SeccompProfile };
}

export interface OciSpecOptions {
  spec: ContainerSpec;
  user: ContainerUser;
  /** What makes the root file system: the overlay, or what is bound into a copy. */
  rootMounts: readonly OciMount[];
  /** Below the standard ones, above the Pod's: names, certificates, npm. */
  hostMounts: readonly OciMount[];
  /** The Pod's volumes, parents first. */
  volumeMounts: readonly OciMount[];
  cgroupMounts: readonly OciMount[];
  cgroupsPath: string;
  cgroupVersion: 1 | 2;
  /** Path of the Pod's network namespace; nothing where it uses the machine's. */
  networkNamespace?: string | undefined;
  /** What the sandbox adds to the environment. */
  env: Readonly<Record<string, string>>;
}

/** What containerd gives a container that asks for nothing, without raw sockets. */
const defaultCapabilities = [
  "CHOWN",
  "DAC_OVERRIDE",
  "FSETID",
  "FOWNER",
  "MKNOD",
  "SETGID",
  "SETUID",
  "SETFCAP",
  "SETPCAP",
  "NET_BIND_SERVICE",
  "SYS_CHROOT",
  "KILL",
  "AUDIT_WRITE",
];
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
export const cpuPeriodUs = 100_000;
/** Less than this the kernel does not take. */
const minCpuQuotaUs = 1000;
/** A Function's process has a dozen threads, which count; an installation of packages runs a few dozen processes. */
const maxProcesses = 1024;
/** When the machine itself is out of memory, containers go before the platform does. */
const oomScore = 500;

const masked =
  "acpi asound interrupts kcore keys latency_stats sched_debug scsi timer_list timer_stats";
const maskedPaths = [
  "/sys/firmware",
  "/sys/devices/virtual/powercap",
  ...masked.split(" ").map((name) => `/proc/${name}`),
];
const readonlyPaths = ["bus", "fs", "irq", "sys", "sysrq-trigger"].map((name) => `/proc/${name}`);

/** Describes a container to the runtime. Throws when the Pod asks for what this node does not give. */
export function ociSpecOf(options: OciSpecOptions): OciSpec {
  const { spec, user, env } = options;
  const { isolation } = spec;
  if (isolation?.privileged)
    throw new Error("this node does not run privileged containers: set privileged: false");
  const capabilities = capabilitiesOf(isolation);
  const all: Record<string, string> = { PATH: defaultPath, HOSTNAME: spec.hostName };
  if (spec.tty) all["TERM"] = "xterm";
  Object.assign(all, spec.env, env);
  return {
    ociVersion: "1.0.2",
    hostname: spec.hostName,
    root: { path: "rootfs", readonly: isolation?.readOnlyRoot ?? false },
    process: {
      terminal: spec.tty ?? false,
      user,
      args: [...spec.argv],
      env: Object.entries(all).map(([name, value]) => `${name}=${value}`),
      cwd: path.posix.resolve("/", spec.workingDir || spec.image.config.WorkingDir || "/"),
      capabilities: {
        bounding: capabilities,
        effective: capabilities,
        permitted: capabilities,
      },
      noNewPrivileges: isolation?.allowPrivilegeEscalation === false,
      oomScoreAdj: oomScore,
      rlimits: [{ type: "RLIMIT_CORE", hard: 0, soft: 0 }, ...userRlimits()],
    },
    mounts: [
      ...options.rootMounts,
      ...standardMounts,
      ...options.cgroupMounts,
      ...options.hostMounts,
      ...options.volumeMounts,
    ],
    linux: linuxOf(options),
  };
}

function linuxOf({
  spec,
  cgroupsPath,
  cgroupVersion,
  networkNamespace,
}: OciSpecOptions): OciSpec["linux"] {
  const { isolation } = spec;
  return {
    namespaces: [
      ...["pid", "ipc", "uts", "mount", "cgroup"].map((type) => ({ type })),
      ...(networkNamespace === undefined ? [] : [{ type: "network", path: networkNamespace }]),
    ],
    cgroupsPath,
    resources: resourcesOf(isolation, cgroupVersion),
    maskedPaths,
    readonlyPaths,
    ...(isolation?.seccomp === "Unconfined" ? {} : { seccomp: defaultSeccompProfile() }),
  };
}

/** Microseconds of each period. */
export function cpuQuotaOf(cores: number): number {
  return Math.max(minCpuQuotaUs, Math.round(cores * cpuPeriodUs));
}

function resourcesOf(isolation: Isolation | undefined, cgroupVersion: 1 | 2) {
  const { cpuLimit, startCpuLimit, cpuRequest, memoryLimit } = isolation ?? {};
  const memory = memoryLimit === undefined ? undefined : Math.ceil(memoryLimit);
  return {
    devices: [{ allow: false, access: "rwm" }],
    pids: { limit: maxProcesses },
    cpu: {
      shares: Math.max(2, Math.round((cpuRequest ?? cpuLimit ?? 0) * 1024)),
      ...(cpuLimit !== undefined && {
        period: cpuPeriodUs,
        quota: cpuQuotaOf(startCpuLimit ?? cpuLimit),
      }),
    },
    ...(memory !== undefined && {
      // A limit with swap that equals the one without means no swap. Version 1 counts swap only if the kernel is
      // configured to.
      memory: { limit: memory, ...(cgroupVersion === 2 && { swap: memory }) },
    }),
  };
}

function capabilitiesOf(isolation: Isolation | undefined): string[] {
  const nameOf = (name: string) => name.toUpperCase().replace(/^CAP_/, "");
  const dropped = new Set((isolation?.droppedCapabilities ?? []).map(nameOf));
  const added = (isolation?.addedCapabilities ?? []).map(nameOf);
  const refused = added.filter((name) => name !== "ALL" && !defaultCapabilities.includes(name));
  if (refused.length > 0)
    throw new Error(
      `this node does not grant the capability ${refused.join(", ")}: remove it from capabilities.add`,
    );
  const kept = dropped.has("ALL") ? [] : defaultCapabilities.filter((name) => !dropped.has(name));
  const wanted = added.includes("ALL") ? defaultCapabilities : added;
  return [...new Set([...kept, ...wanted])].map((name) => `CAP_${name}`);
}

const tmpfs = (destination: string, options: string[]): OciMount => ({
  destination,
  type: "tmpfs",
  source: "tmpfs",
  options: ["nosuid", ...options],
});

const standardMounts: readonly OciMount[] = [
  { destination: "/proc", type: "proc", source: "proc", options: ["nosuid", "noexec", "nodev"] },
  tmpfs("/dev", ["strictatime", "mode=755", "size=65536k"]),
  {
    destination: "/dev/pts",
    type: "devpts",
    source: "devpts",
    options: ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"],
  },
  tmpfs("/dev/shm", ["noexec", "nodev", "mode=1777", "size=65536k"]),
  {
    destination: "/dev/mqueue",
    type: "mqueue",
    source: "mqueue",
    options: ["nosuid", "noexec", "nodev"],
  },
  {
    destination: "/sys",
    type: "sysfs",
    source: "sysfs",
    options: ["nosuid", "noexec", "nodev", "ro"],
  },
];

/** A file or directory of the host at a place in the container. */
export function bindMount(source: string, destination: string, readOnly: boolean): OciMount {
  const options = ["rbind", "rprivate", "nosuid", "nodev", readOnly ? "ro" : "rw"];
  return { destination, type: "bind", source, options };
}
