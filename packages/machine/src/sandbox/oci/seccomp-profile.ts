import { arch } from "node:os";

/** `linux.seccomp` of the OCI runtime specification. */
export interface SeccompProfile {
  defaultAction: string;
  architectures: string[];
  syscalls: {
    names: string[];
    action: string;
    errnoRet: number;
    args?: { index: number; value: number; valueTwo?: number; op: string }[];
  }[];
}

const EPERM = 1;
const ENOSYS = 38;
const AF_VSOCK = 40;

/** Programs of another instruction set, 32-bit ones too, are ended: their calls have other numbers. */
const architectures: Record<string, string> = {
  x64: "SCMP_ARCH_X86_64",
  arm64: "SCMP_ARCH_AARCH64",
};

/**
 * What reaches beyond a container, or into rarely used parts of the kernel: what the default profile
 * of containerd does not allow either. That one lists what is allowed; adding its 300 rules takes the
 * runtime longer than all the rest of a start (measured: 12 to 20 ms of 40), so here is the rest of
 * the table. The difference is calls that are newer than this list.
 */
const refused = {
  mounts: `mount umount umount2 pivot_root fsopen fsmount fsconfig fspick move_mount open_tree
    open_tree_attr mount_setattr statmount listmount swapon swapoff`,
  namespaces: `unshare setns sethostname setdomainname`,
  kernel: `init_module finit_module delete_module create_module query_module get_kernel_syms
    kexec_load kexec_file_load reboot bpf perf_event_open syslog iopl ioperm acct lookup_dcookie
    nfsservctl uselib ustat sysfs _sysctl quotactl quotactl_fd vhangup`,
  time: `settimeofday stime clock_settime clock_settime64 clock_adjtime clock_adjtime64 adjtimex`,
  keys: `keyctl add_key request_key`,
  files: `open_by_handle_at name_to_handle_at fanotify_init fanotify_mark`,
  memory: `userfaultfd mbind set_mempolicy set_mempolicy_home_node migrate_pages move_pages
    process_madvise process_vm_readv process_vm_writev kcmp pidfd_getfd`,
  queues: `io_uring_setup io_uring_enter io_uring_register`,
};

/** Each makes a namespace when it is among the flags of clone(2); CLONE_NEWTIME is for clone3 only. */
const namespaceFlags = [
  0x0002_0000, // CLONE_NEWNS
  0x0200_0000, // CLONE_NEWCGROUP
  0x0400_0000, // CLONE_NEWUTS
  0x0800_0000, // CLONE_NEWIPC
  0x1000_0000, // CLONE_NEWUSER
  0x2000_0000, // CLONE_NEWPID
  0x4000_0000, // CLONE_NEWNET
];

/** The profile behind `seccompProfile: { type: RuntimeDefault }`. */
export function defaultSeccompProfile(machine: string = arch()): SeccompProfile {
  const refuse = { action: "SCMP_ACT_ERRNO", errnoRet: EPERM };
  const architecture = architectures[machine];
  return {
    defaultAction: "SCMP_ACT_ALLOW",
    architectures: architecture === undefined ? [] : [architecture],
    syscalls: [
      { names: Object.values(refused).flatMap((text) => text.split(/\s+/)), ...refuse },
      ...namespaceFlags.map((flag) => ({
        names: ["clone"],
        ...refuse,
        args: [{ index: 0, value: flag, valueTwo: flag, op: "SCMP_CMP_MASKED_EQ" }],
      })),
      // Its flags are in memory, which a filter cannot read: callers fall back to clone.
      { names: ["clone3"], action: "SCMP_ACT_ERRNO", errnoRet: ENOSYS },
      // Reaches the hypervisor.
      {
        names: ["socket"],
        ...refuse,
        args: [{ index: 0, value: AF_VSOCK, op: "SCMP_CMP_EQ" }],
      },
    ],
  };
}
