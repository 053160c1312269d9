/** Why a Deployment does not get ready, in the words that help: what `kubectl describe` of its Pods and claims would say. */
import {
  type ContainerStatus,
  type Deployment,
  type KubeClient,
  type KubeObject,
  type Pod,
  type Resource,
  resources,
} from "@spry/kube";
import { printable } from "../printable.ts";

interface Claim extends KubeObject {
  spec?: { storageClassName?: string };
  status?: { phase?: string };
}

const claims: Resource<Claim> = {
  group: "",
  version: "v1",
  kind: "PersistentVolumeClaim",
  plural: "persistentvolumeclaims",
  namespaced: true,
};

const maxLength = 500;
const usualWaits = ["ContainerCreating", "PodInitializing"];

/** One sentence, or undefined where nothing is known but that it takes time. */
export async function whyNotReady(
  client: KubeClient,
  { metadata: { namespace = "", name = "" }, spec, status }: Deployment,
): Promise<string | undefined> {
  const failure = status?.conditions?.find(({ type }) => type === "ReplicaFailure");
  if (failure?.status === "True") return failure.message;
  const labels = Object.entries(spec?.selector.matchLabels ?? {});
  const labelSelector = labels.map(([key, value]) => `${key}=${value}`).join(",");
  const { items } = await client.list(resources.pods, { namespace, labelSelector });
  const alive = items.filter(({ metadata }) => !metadata.deletionTimestamp);
  if (alive.length === 0)
    return `Deployment ${name} has no Pods: its controller does not make them`;
  for (const pod of alive) {
    const found = (await problemOfClaims(client, pod)) ?? (await problemOf(client, pod));
    if (found !== undefined) return printable(found).slice(0, maxLength);
  }
  return undefined;
}

async function problemOf(client: KubeClient, pod: Pod): Promise<string | undefined> {
  const { name = "" } = pod.metadata;
  const scheduled = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
  if (scheduled?.status === "False")
    return `Pod ${name} cannot be placed on a node: ${scheduled.message}`;
  const all = [
    ...(pod.status?.initContainerStatuses ?? []),
    ...(pod.status?.containerStatuses ?? []),
  ];
  for (const container of all) {
    const found = await problemOfContainer(client, pod, container);
    if (found !== undefined) return found;
  }
  return undefined;
}

async function problemOfContainer(
  client: KubeClient,
  pod: Pod,
  { name, image, ready, state, lastState }: ContainerStatus,
): Promise<string | undefined> {
  const { name: podName = "" } = pod.metadata;
  const end = state?.terminated ?? lastState?.terminated;
  if (end && end.exitCode !== 0) {
    const said = await lastLine(client, pod, name, state?.terminated === undefined);
    const words = said === "" ? (end.message?.trim() ?? "") : said;
    return `Pod ${podName} crashes: container ${name} ended with exit code ${end.exitCode} (${end.reason})${words ? `; its last line: ${words}` : ""}`;
  }
  const { reason = "", message = "" } = state?.waiting ?? {};
  if (reason !== "" && !usualWaits.includes(reason)) {
    const named = reason === "ErrImagePull" ? "ImagePullBackOff" : reason;
    const about = /Image/.test(named) ? ` of image ${image}` : "";
    return `Pod ${podName}: ${named}${about}${message ? `: ${message}` : ""}`;
  }
  if (state?.running && !ready) {
    const event = await latestEvent(client, pod.metadata.namespace, podName);
    return `Pod ${podName} runs and is not ready${event ? `: ${event}` : ""}`;
  }
  return undefined;
}

/** Of the claims of a Pod, the first that is not bound. */
async function problemOfClaims(client: KubeClient, pod: Pod): Promise<string | undefined> {
  const { namespace = "" } = pod.metadata;
  for (const { persistentVolumeClaim } of pod.spec?.volumes ?? []) {
    if (!persistentVolumeClaim) continue;
    const name = persistentVolumeClaim.claimName;
    const claim = await client.get(claims, { namespace, name }).catch(() => undefined);
    const phase = claim ? claim.status?.phase : "missing";
    if (phase === "Bound") continue;
    const event = await latestEvent(client, namespace, name);
    const wanted = claim?.spec?.storageClassName;
    const classText = wanted === undefined ? "" : ` (storage class ${wanted})`;
    return `PersistentVolumeClaim ${name}${classText} is ${phase ?? "Pending"}${event ? `: ${event}` : ""}`;
  }
  return undefined;
}

async function latestEvent(
  client: KubeClient,
  namespace: string | undefined,
  name: string,
): Promise<string | undefined> {
  const fieldSelector = `involvedObject.name=${name},type=Warning`;
  const { items } = await client
    .list(resources.events, { namespace, fieldSelector })
    .catch(() => ({ items: [] }));
  const timeOf = ({ lastTimestamp, eventTime, metadata }: (typeof items)[number]) =>
    lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? "";
  return items.toSorted((a, b) => timeOf(b).localeCompare(timeOf(a)))[0]?.message?.trim();
}

/** What a container wrote last; `previous`: the one before, while the next is being started. */
async function lastLine(
  client: KubeClient,
  { metadata: { namespace, name } }: Pod,
  container: string,
  previous: boolean,
): Promise<string> {
  const query = new URLSearchParams({ container, tailLines: "5", previous: String(previous) });
  try {
    const response = await client.raw(
      "GET",
      `/api/v1/namespaces/${namespace}/pods/${name}/log?${query}`,
    );
    const lines = (await response.text()).split("\n").filter((line) => line.trim() !== "");
    return response.ok ? (lines.at(-1)?.trim() ?? "") : "";
  } catch {
    return "";
  }
}
