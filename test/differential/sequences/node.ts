import {
  Informer,
  isConflict,
  isNotFound,
  type KubeClient,
  type Pod,
  resources,
  timestamp,
  systemClock,
} from "@spry/kube";

export const nodeName = "stage";
/** A Pod with this annotation stays until the case ends it. */
export const lingering = "stage/lingers";
const leaseMs = 10_000;

/**
 * What a node does by itself: it is there, tells so, and ends the Pods that are deleted. Everything else happens
 * on a case's cue. Resolves with the Pods it watches.
 */
export async function playNode(client: KubeClient, signal: AbortSignal): Promise<Informer<Pod>> {
  const now = () => timestamp(systemClock);
  const quantities = {
    cpu: "1000",
    memory: "1000Gi",
    pods: "10000",
    "ephemeral-storage": "1000Gi",
  };
  const { metadata } = await client.create(resources.nodes, {
    metadata: { name: nodeName, labels: { "kubernetes.io/hostname": nodeName } },
  });
  const status = {
    capacity: quantities,
    allocatable: quantities,
    conditions: [
      {
        type: "Ready",
        status: "True",
        reason: "KubeletReady",
        message: "ready",
        lastHeartbeatTime: now(),
        lastTransitionTime: now(),
      },
    ],
  };
  await client.patch(
    resources.nodes,
    { name: nodeName },
    { status },
    { subresource: "status", type: "strategic" },
  );
  const lease = { namespace: "kube-node-lease", name: nodeName };
  await client.create(resources.leases, {
    metadata: {
      ...lease,
      ownerReferences: [
        { apiVersion: "v1", kind: "Node", name: nodeName, uid: metadata.uid ?? "" },
      ],
    },
    spec: { holderIdentity: nodeName, leaseDurationSeconds: 40, renewTime: micro() },
  });
  const renewing = setInterval(() => {
    void client.patch(resources.leases, lease, { spec: { renewTime: micro() } }).catch(() => {});
  }, leaseMs);
  signal.addEventListener("abort", () => clearInterval(renewing), { once: true });

  const pods = new Informer(client, resources.pods);
  pods.onChange(({ type, object }) => {
    const { deletionTimestamp, annotations } = object.metadata;
    if (type === "deleted" || !deletionTimestamp || !object.spec?.nodeName) return;
    if (annotations?.[lingering] === undefined) void endPod(client, object).catch(() => {});
  });
  void pods.run(signal);
  await pods.synced;
  return pods;
}

const micro = () => new Date().toISOString().replace("Z", "000Z");

/** As the kubelet does: the last status tells the end, then the object goes. */
export async function endPod(client: KubeClient, { metadata, status }: Pod): Promise<void> {
  const target = { namespace: metadata.namespace, name: metadata.name ?? "" };
  const { uid = "" } = metadata;
  try {
    if (status?.phase !== "Succeeded" && status?.phase !== "Failed") {
      const ended = {
        phase: "Failed",
        conditions: [{ type: "Ready", status: "False", reason: "PodFailed" }],
      };
      await client.patch(
        resources.pods,
        target,
        { metadata: { uid }, status: ended },
        { subresource: "status", type: "strategic" },
      );
    }
    await client.delete(resources.pods, target, { gracePeriodSeconds: 0, preconditions: { uid } });
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
}
