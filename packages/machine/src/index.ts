/** The single machine: what controls workloads on it, and the agent that runs their Pods. */
export { type ControllersOptions, startControllers } from "./controllers/start-controllers.ts";
export { ServiceFiles } from "./network/service-files.ts";
export { createServiceLookup } from "./network/service-lookup.ts";
export { createNode, type MachineNode, type NodeOptions } from "./node/node.ts";
export { openOciSandbox, type OciSandboxOptions } from "./sandbox/oci/oci-sandbox.ts";
export { fetchPython } from "./sandbox/fetch-python.ts";
export { Interpreters } from "./sandbox/interpreters.ts";
export { findPython } from "./sandbox/python-installations.ts";
export { TrialFailed } from "./sandbox/confinement/trial-failed.ts";
export { openProcessSandbox, processSandbox } from "./sandbox/process-sandbox.ts";
export { type SandboxOptions, type WarmOptions } from "./sandbox/sandbox-options.ts";
export { type EndedPod, endPodsAtPort } from "./sandbox/port-holders.ts";
export { findByEnvironment } from "./sandbox/processes.ts";
export { runtimeDigest } from "./sandbox/warm/runtime-copy.ts";
export {
  type ContainerSpec,
  type ContainerUsage,
  type ExecResult,
  type ExitStatus,
  type Isolation,
  type LocalImage,
  type Mount,
  type PodIdentity,
  type PodSandbox,
  type RecoveredPod,
  type Sandbox,
  type SandboxContainer,
} from "./sandbox/sandbox.ts";
