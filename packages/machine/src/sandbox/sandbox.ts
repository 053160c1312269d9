import { type Writable } from "node:stream";
import { type ContainerConfig } from "@spry/image";
import { type ClusterView } from "../network/cluster-view.ts";
import { type InputMode } from "./container-input.ts";
import { type ExecCommand, type ExecProcess } from "./exec-process.ts";
import { type TerminalSize } from "./terminal.ts";

/**
 * How Pods run on this machine. The node agent decides what runs and when; a sandbox knows how: it
 * gives a Pod an address, starts processes in it, and finds them again after the agent was away.
 */
export interface Sandbox {
  /** Shown on the Node as the label `node.spry.io/sandbox`. */
  readonly name: string;
  /** For the Node's `containerRuntimeVersion`: `process://namespaces`. */
  readonly runtimeVersion: string;
  /** What is isolated and what is not, as a plain sentence. */
  readonly isolation: string;
  /** Whether each container has a copy of its image's files, in which owners mean what they mean to the image. */
  readonly keepsOwners: boolean;
  /** What users should know about this kind of sandbox, for the Node's annotations. */
  readonly annotations: Record<string, string>;
  /**
   * Finds what an earlier agent left running. Called once, before anything else. Processes that
   * belong to no known container are ended here.
   */
  recover(): Promise<RecoveredPod[]>;
  /** Whether the image can be run at once. */
  isPrepared(image: LocalImage): boolean;
  /** Makes ready what the image needs besides itself, such as an interpreter. May take minutes. */
  prepare(image: LocalImage, progress: (message: string) => void): Promise<void>;
  /** The Pod's place on this machine; the same one when it is there already. */
  openPod(pod: PodPlacement): Promise<PodSandbox>;
  /** The machine's address, as its Pods see it. */
  readonly hostAddress: string;
  /** Lets Pods reach what listens on this port of 127.0.0.1, at `hostAddress`. */
  offer(port: number): Promise<void>;
  /** Lets Pods call these Services, and no others, by their names and addresses; keeps the policies, if it can. */
  applyCluster(view: ClusterView): Promise<void>;
  /** Removes what is not any Pod's, when no Pod is to run any more. */
  close(): Promise<void>;
  /** Of processes that wait for Pods; undefined where there are none. */
  warmFigures?(): WarmFigures | undefined;
  /** CPU time and memory of everything that runs. */
  usage(): Promise<ContainerUsage[]>;
}

/** Processes of runtimes that wait for Pods (docs/adr/0028-warm-processes.md). */
export interface WarmFigures {
  /** How many may wait at most. */
  max: number;
  waiting: number;
  /** Since the platform's start: containers that such a process has become, and others that requests have started. */
  used: number;
  missed: number;
}

export interface PodIdentity {
  uid: string;
  namespace: string;
  name: string;
}

/** What a Pod's place is made from. */
export interface PodPlacement extends PodIdentity {
  hostName?: string | undefined;
  subdomain?: string | undefined;
  /** Uses the machine's network. */
  hostNetwork?: boolean | undefined;
  dns?: { policy?: string | undefined; config?: DnsConfig | undefined } | undefined;
  hostAliases?: { ip: string; hostnames: string[] }[] | undefined;
  /**
   * Of a Pod with one container: a process may wait for it. `image` if it is here already, and the Pod may use it;
   * `isolation` of the container then.
   */
  expected?: { image: LocalImage | undefined; isolation?: Isolation | undefined } | undefined;
}

/** `spec.dnsConfig` of a Pod. */
export interface DnsConfig {
  nameservers?: string[] | undefined;
  searches?: string[] | undefined;
  options?: { name?: string | undefined; value?: string | undefined }[] | undefined;
}

/** An unpacked image. */
export interface LocalImage {
  digest: string;
  rootDir: string;
  config: ContainerConfig;
}

export interface PodSandbox {
  readonly ip: string;
  /** Volumes, logs and scratch of the Pod. Removed by `close`. */
  readonly dir: string;
  /** Other directories that its containers can write to. Removed by `close`, too. */
  readonly elsewhere?: readonly string[] | undefined;
  /** Whom files in volumes are to belong to, where containers run as another user than the platform. */
  readonly owner?: { uid: number; gid: number } | undefined;
  start(spec: ContainerSpec): Promise<SandboxContainer>;
  /** Ends every process that is left, removes the directory and gives the address back. */
  close(): Promise<void>;
}

export interface Mount {
  mountPath: string;
  /** The directory or file on this machine. */
  source: string;
  readOnly?: boolean;
}

/** What a Pod confines its container to; kept by sandboxes that can, and by those that cannot ignored. */
export interface Isolation {
  /** Cores. */
  cpuLimit?: number | undefined;
  /** In place of `cpuLimit` until it is ready, and not for long. */
  startCpuLimit?: number | undefined;
  cpuRequest?: number | undefined;
  /** Bytes. */
  memoryLimit?: number | undefined;
  /** Instead of the image's user and group. */
  user?: number | undefined;
  group?: number | undefined;
  supplementalGroups: readonly number[];
  readOnlyRoot: boolean;
  allowPrivilegeEscalation: boolean;
  privileged: boolean;
  /** Names with or without `CAP_`, or `ALL`. */
  addedCapabilities: readonly string[];
  droppedCapabilities: readonly string[];
  seccomp: "RuntimeDefault" | "Unconfined";
}

export interface ContainerSpec {
  name: string;
  /** Which run of the container this is: its restart count. */
  run: number;
  image: LocalImage;
  /** Program and arguments, as the image and the Pod say. */
  argv: readonly string[];
  /** As the image and the Pod say. */
  env: Readonly<Record<string, string>>;
  workingDir?: string | undefined;
  mounts: readonly Mount[];
  /** Ports that the container says it listens on. */
  ports: readonly number[];
  /** Gets both output streams, appended. */
  logFile: string;
  terminationLog: string;
  /** The exit code matters beyond this agent's life: it is to be known to the next one too. */
  keepExitCode: boolean;
  hostName: string;
  /** People can attach to its input; without, it reads an empty one. */
  stdin?: InputMode | undefined;
  /** It runs on a terminal, where the machine has such. */
  tty?: boolean | undefined;
  isolation?: Isolation | undefined;
}

export interface ExitStatus {
  /** 128 + number for a signal, as shells and Kubernetes have it. */
  exitCode: number;
  signal?: string;
  /** Milliseconds since the epoch. */
  finishedAt: number;
  /** Why the code is not the program's own, for example when it could not be started. */
  reason?: "StartError" | "OOMKilled" | "ContainerStatusUnknown";
  message?: string;
}

export interface SandboxContainer {
  readonly id: string;
  readonly startedAt: number;
  readonly exited: Promise<ExitStatus>;
  /** Resolves when the process says itself that it is ready; never, if it does not. */
  readonly ready: Promise<void>;
  /** Its process had waited for its Pod: it is ready in a moment. */
  readonly hasWaited?: boolean;
  /** Signals every process of the container. */
  kill(signal: "SIGTERM" | "SIGKILL" | "SIGINT" | "SIGHUP" | "SIGQUIT"): void;
  /** Runs a command next to the container's process, in the same environment. */
  exec(argv: readonly string[], options: { timeoutMs: number }): Promise<ExecResult>;
  /** The same with its streams, for people and tools; absent where a sandbox cannot. */
  execStreams?(command: ExecCommand): ExecProcess;
  /** The input of a container that was started with `stdin`; undefined when it has none. */
  openStdin?(): Writable | undefined;
  /** Of the container's own terminal, if it has one. */
  resize?(size: TerminalSize): void;
}

export interface ExecResult {
  /** -1 when it ran out of time. */
  exitCode: number;
  /** Both streams, cut at 10 KiB. */
  output: string;
}

export interface RecoveredPod extends PodIdentity {
  sandbox: PodSandbox;
  containers: RecoveredContainer[];
  /** Its network is not the one that it would get now: it serves the machine's callers only, until it is made again. */
  isOutdated: boolean;
}

/** A container whose process still runs, or of whose end something is known. */
export interface RecoveredContainer {
  name: string;
  run: number;
  container: SandboxContainer;
}

export interface ContainerUsage {
  podUid: string;
  container: string;
  /** Since the container started; of processes that have ended too, as far as they were waited for. */
  cpuNanoseconds: number;
  memoryBytes: number;
  startedAt: number;
}
