import { cpus, freemem, hostname, release, totalmem } from "node:os";
import { readFileSync } from "node:fs";
import {
  type Clock,
  type Condition,
  isAlreadyExists,
  isNotFound,
  type KubeClient,
  type Node,
  resources,
  setCondition,
  timestamp,
} from "@spry/kube";
import { type Sandbox } from "../sandbox/sandbox.ts";

const leaseNamespace = "kube-node-lease";
const leaseDurationSeconds = 40;
export const leaseRenewMs = 10_000;
/** More processes than this are more than one machine serves well. */
const maxPods = 500;

const architectures: Record<string, string> = { x64: "amd64" };
const systems: Record<string, string> = { win32: "windows" };

export function allocatable(): { cpu: number; memory: number } {
  return { cpu: cpus().length || 1, memory: totalmem() };
}

/** Facts about the machine itself. */
export interface MachineFacts {
  images: { names: string[]; sizeBytes: number }[];
  diskPressure: boolean;
}

const diskPressureTaint = { key: "node.kubernetes.io/disk-pressure", effect: "NoSchedule" };

/** Makes the Node object, or brings it up to date, and says that the node is ready. */
export async function registerNode(
  client: KubeClient,
  name: string,
  sandbox: Sandbox,
  facts: MachineFacts,
  clock: Clock,
): Promise<void> {
  const labels = {
    "kubernetes.io/hostname": name,
    "kubernetes.io/os": systems[process.platform] ?? process.platform,
    "kubernetes.io/arch": architectures[process.arch] ?? process.arch,
    "node.spry.io/sandbox": sandbox.name,
  };
  const metadata = { name, labels, annotations: sandbox.annotations };
  const created = await client
    .create<Node>(resources.nodes, { metadata, spec: {} })
    .catch((error: unknown) => {
      if (isAlreadyExists(error)) return undefined;
      throw error;
    });
  const node = created ?? (await client.patch(resources.nodes, { name }, { metadata }));
  const status = nodeStatus(node, sandbox, facts, clock, { ready: true });
  await client.patch(resources.nodes, { name }, { status }, { subresource: "status" });
  await putTaint(client, node, facts.diskPressure);
}

/** Keeps new Pods waiting while they would be rejected (Kubernetes' node lifecycle controller). */
async function putTaint(client: KubeClient, node: Node, isWanted: boolean): Promise<void> {
  const { taints = [] } = node.spec ?? {};
  const others = taints.filter(({ key }) => key !== diskPressureTaint.key);
  if (isWanted === others.length < taints.length) return;
  const { name = "" } = node.metadata;
  const wanted = isWanted ? [...others, diskPressureTaint] : others;
  await client.patch(resources.nodes, { name }, { spec: { taints: wanted } });
}

/** On an orderly end: new Pods wait instead of being bound to a node that is away. */
export async function markNotReady(
  client: KubeClient,
  name: string,
  sandbox: Sandbox,
  clock: Clock,
): Promise<void> {
  const node = await client.get(resources.nodes, { name });
  const facts = { images: [], diskPressure: false };
  const { conditions } = nodeStatus(node, sandbox, facts, clock, { ready: false });
  await client.patch(
    resources.nodes,
    { name },
    { status: { conditions } },
    { subresource: "status" },
  );
}

function nodeStatus(
  node: Node,
  sandbox: Sandbox,
  { images, diskPressure }: MachineFacts,
  clock: Clock,
  { ready }: { ready: boolean },
): NonNullable<Node["status"]> {
  const amounts = {
    cpu: String(allocatable().cpu),
    memory: `${Math.floor(totalmem() / 1024)}Ki`,
    pods: String(maxPods),
  };
  let conditions = (node.status?.conditions ?? []) as Condition[];
  const put = (type: string, status: Condition["status"], reason: string, message: string) => {
    const condition = { type, status, reason, message, lastHeartbeatTime: timestamp(clock) };
    conditions = setCondition(conditions, condition, clock);
  };
  const isShort = freemem() < totalmem() * 0.02;
  put(
    "MemoryPressure",
    isShort ? "True" : "False",
    isShort ? "KubeletHasInsufficientMemory" : "KubeletHasSufficientMemory",
    isShort ? "less than 2% of the memory is free" : "kubelet has sufficient memory available",
  );
  if (diskPressure)
    put("DiskPressure", "True", "KubeletHasDiskPressure", "kubelet has disk pressure");
  else put("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure");
  put("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available");
  if (ready) put("Ready", "True", "KubeletReady", "kubelet is posting ready status");
  else put("Ready", "False", "KubeletStopped", "the platform has been stopped");
  return {
    capacity: amounts,
    allocatable: amounts,
    conditions: conditions,
    addresses: [
      { type: "InternalIP", address: sandbox.hostAddress },
      { type: "Hostname", address: node.metadata.name ?? "" },
    ],
    images,
    nodeInfo: {
      architecture: architectures[process.arch] ?? process.arch,
      bootID: bootId(),
      containerRuntimeVersion: sandbox.runtimeVersion,
      kernelVersion: release(),
      kubeProxyVersion: "",
      kubeletVersion: "v1.34.0-spry",
      machineID: hostname(),
      operatingSystem: systems[process.platform] ?? process.platform,
      osImage: `Spry on ${process.platform}`,
      systemUUID: hostname(),
    },
  };
}

function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
}

/** Shows that the agent is alive: other components look at `renewTime`, not at the Node. */
export async function renewLease(client: KubeClient, name: string, clock: Clock): Promise<void> {
  const renewTime = new Date(clock.now()).toISOString().replace("Z", "000Z");
  const spec = { holderIdentity: name, leaseDurationSeconds, renewTime };
  const target = { namespace: leaseNamespace, name };
  try {
    await client.patch(resources.leases, target, { spec });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    await client.create(resources.leases, { metadata: target, spec: spec });
  }
}
