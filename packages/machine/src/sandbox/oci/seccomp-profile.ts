import { arch } from "node:os";

/** `linux.seccomp` of the OCI runtime specification. */
export interface SeccompProfile {
  defaultAction: string;
  defaultErrnoRet: number;
  architectures: string[];
  syscalls: {
    names: string[];
    action: string;
    errnoRet?: number;
    args?: { index: number; value: number; valueTwo?: number; op: string }[];
  }[];
}

const EPERM = 1;
const ENOSYS = 38;
/** Flags of clone(2) that make namespaces; not CLONE_NEWTIME, which shares its bit with a signal. */
const namespaceFlags = 0x7e02_0000;

const architectures: Record<string, string[]> = {
  x64: ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
  arm64: ["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"],
};

/**
 * What an ordinary program may ask of the kernel; everything else is refused. Not here, because they
 * reach beyond the container: mounts, namespaces, modules, kexec, clocks of the machine, keyrings,
 * BPF, performance counters, userfaultfd, io_uring, opening files by handle.
 */
const files = `
  access chdir chmod chown chown32 close close_range copy_file_range creat dup dup2 dup3 faccessat
  faccessat2 fadvise64 fadvise64_64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchown32
  fchownat fcntl fcntl64 fdatasync fgetxattr flistxattr flock fremovexattr fsetxattr fstat fstat64
  fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futimesat getcwd getdents getdents64
  getxattr getxattrat inotify_add_watch inotify_init inotify_init1 inotify_rm_watch ioctl lchown
  lchown32 lgetxattr link linkat listxattr listxattrat llistxattr lremovexattr lseek _llseek
  lsetxattr lstat lstat64 mkdir mkdirat mknod mknodat newfstatat open openat openat2 pread64 preadv
  preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv removexattr
  removexattrat rename renameat renameat2 rmdir sendfile sendfile64 setxattr setxattrat splice stat
  stat64 statfs statfs64 statx symlink symlinkat sync sync_file_range syncfs tee truncate truncate64
  umask unlink unlinkat utime utimensat utimensat_time64 utimes vmsplice write writev`;
const memory = `
  arch_prctl brk cachestat get_mempolicy madvise map_shadow_stack membarrier memfd_create
  memfd_secret mincore mlock mlock2 mlockall mmap mmap2 mprotect mremap mseal msync munlock
  munlockall munmap pkey_alloc pkey_free pkey_mprotect process_mrelease remap_file_pages`;
const processes = `
  capget capset execve execveat exit exit_group fork futex futex_requeue futex_time64 futex_wait
  futex_waitv futex_wake get_robust_list get_thread_area getcpu getegid getegid32 geteuid geteuid32
  getgid getgid32 getgroups getgroups32 getpgid getpgrp getpid getppid getpriority getresgid
  getresgid32 getresuid getresuid32 getrlimit getrusage getsid gettid getuid getuid32 ioprio_get
  ioprio_set kill landlock_add_rule landlock_create_ruleset landlock_restrict_self pause pidfd_open
  pidfd_send_signal prctl prlimit64 ptrace restart_syscall rseq sched_get_priority_max
  sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
  sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr sched_setparam
  sched_setscheduler sched_yield seccomp set_robust_list set_thread_area set_tid_address setfsgid
  setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setitimer getitimer setpgid
  setpriority setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32
  setrlimit setsid setuid setuid32 chroot sysinfo times tgkill tkill ugetrlimit uname vfork wait4
  waitid waitpid`;
const signalsAndTime = `
  alarm clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep
  clock_nanosleep_time64 getrandom gettimeofday nanosleep rt_sigaction rt_sigpending rt_sigprocmask
  rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64
  rt_tgsigqueueinfo sigaltstack signal sigaction signalfd signalfd4 sigpending sigprocmask sigreturn
  sigsuspend time timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64
  timer_settime timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime
  timerfd_settime64`;
const communication = `
  accept accept4 bind connect epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait
  epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 getpeername getsockname getsockopt
  io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup io_submit ipc listen
  mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend
  mq_timedsend_time64 mq_unlink msgctl msgget msgrcv msgsnd _newselect pipe pipe2 poll ppoll
  ppoll_time64 pselect6 pselect6_time64 recv recvfrom recvmmsg recvmmsg_time64 recvmsg select semctl
  semget semop semtimedop semtimedop_time64 send sendmmsg sendmsg sendto setsockopt shmat shmctl
  shmdt shmget shutdown socketcall socketpair`;
/** What the C libraries of 32-bit and arm programs need to start at all. */
const architectureOwn = `
  arm_fadvise64_64 arm_sync_file_range sync_file_range2 breakpoint cacheflush set_tls modify_ldt`;

const names = (text: string): string[] => text.trim().split(/\s+/);

/** The profile behind `seccompProfile: { type: RuntimeDefault }`. */
export function defaultSeccompProfile(machine: string = arch()): SeccompProfile {
  const allow = "SCMP_ACT_ALLOW";
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: EPERM,
    architectures: architectures[machine] ?? [],
    syscalls: [
      {
        names: [files, memory, processes, signalsAndTime, communication, architectureOwn].flatMap(
          names,
        ),
        action: allow,
      },
      // Threads and processes, but no namespaces.
      {
        names: ["clone"],
        action: allow,
        args: [{ index: 0, value: namespaceFlags, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }],
      },
      // Its flags are in memory, which a filter cannot read: callers fall back to clone.
      { names: ["clone3"], action: "SCMP_ACT_ERRNO", errnoRet: ENOSYS },
      // AF_VSOCK reaches the hypervisor.
      { names: ["socket"], action: allow, args: [{ index: 0, value: 40, op: "SCMP_CMP_NE" }] },
      // Plain Linux, 32-bit, and asking which it is.
      ...[0x0, 0x0008, 0x20000, 0x20008, 0xffffffff].map((value) => ({
        names: ["personality"],
        action: allow,
        args: [{ index: 0, value, op: "SCMP_CMP_EQ" }],
      })),
    ],
  };
}
