/**
 * What the gateways of a cluster have logged about a request that its Pod did not answer. The log of a container whose process
 * was killed has no line about it there; on one machine the node agent writes it (machine room, `lastWords`).
 */
import { type FailedRequest, failedMessage } from "@spry/function";
import {
  formatLabelSelector,
  isForbidden,
  type KubeClient,
  type Pod,
  requirementsOf,
  resources,
  StatusError,
} from "@spry/kube";
import { gatewayLabels } from "./install/names.ts";

const namespace = "kyma-system";
/** Between the end of a process and the gateway's line about it; the node gives the former in whole seconds. */
const nearMs = 3_000;

export interface Unanswered {
  /** The gateway's Pod. */
  gateway: string;
  time: string;
  /** `POST /orders was not answered: …`. */
  message: string;
}

/** Of the request with this id, to this Function; `pods` are its instances. Undefined where the user may not read the gateways' logs. */
export async function unansweredRequests(
  client: KubeClient,
  fn: { namespace: string; name: string },
  { id, pods, since }: { id: string; pods: readonly Pod[]; since?: number | undefined },
): Promise<Unanswered[] | undefined> {
  const labelSelector = formatLabelSelector(requirementsOf({ matchLabels: gatewayLabels }));
  try {
    const { items } = await client.list(resources.pods, { namespace, labelSelector });
    const logs = items.map(async ({ metadata: { name: gateway = "" } }) => {
      const lines = await linesWith(client, gateway, id, since);
      return lines.flatMap((line) => {
        const entry = entryIn(line);
        if (entry?.requestId !== id || !isAbout(entry, fn)) return [];
        return { gateway, time: entry.time, message: messageFor(entry, pods) };
      });
    });
    const all = await Promise.all(logs);
    return all.flat().sort((a, b) => a.time.localeCompare(b.time));
  } catch (error) {
    if (isForbidden(error)) return undefined;
    throw error;
  }
}

/** None of a Pod that has no log now. */
async function linesWith(
  client: KubeClient,
  pod: string,
  text: string,
  since: number | undefined,
): Promise<string[]> {
  const query = since === undefined ? "" : `?sinceSeconds=${since}`;
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}/log${query}`;
  const response = await client.raw("GET", path, { accept: "*/*" }).catch((error: unknown) => {
    if (isForbidden(error) || !(error instanceof StatusError)) throw error;
    return undefined;
  });
  const decoder = new TextDecoder();
  const found: string[] = [];
  let rest = "";
  for await (const chunk of response?.body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    found.push(...lines.filter((line) => line.includes(text)));
  }
  return rest.includes(text) ? [...found, rest] : found;
}

type Entry = FailedRequest & { time: string };

function entryIn(line: string): Entry | undefined {
  try {
    const { msg, ...entry } = JSON.parse(line) as Entry & { msg?: string };
    return msg === failedMessage && typeof entry.time === "string" ? entry : undefined;
  } catch {
    return undefined;
  }
}

const isAbout = ({ destination }: Entry, fn: { namespace: string; name: string }): boolean =>
  destination === `Function ${fn.namespace}/${fn.name}` ||
  destination === `Route ${fn.namespace}/${fn.name}`;

function messageFor(entry: Entry, pods: readonly Pod[]): string {
  const { method, path, cause } = entry;
  const end = endOf(entry, pods);
  return `${method} ${path} was not answered: ${cause}${end ? `; ${end}` : ""}`;
}

/** Why a container of that Pod ended at that time. */
function endOf({ pod, time }: Entry, pods: readonly Pod[]): string | undefined {
  const ip = pod?.slice(0, pod.lastIndexOf(":")).replaceAll(/[[\]]/g, "");
  const at = Date.parse(time);
  for (const { metadata, spec, status } of pods) {
    if (ip === undefined || status?.podIP !== ip) continue;
    for (const { name, state, lastState } of status.containerStatuses ?? [])
      for (const end of [state?.terminated, lastState?.terminated]) {
        const endedAt = Date.parse(end?.finishedAt ?? "");
        if (!end || Math.abs(endedAt - at) > nearMs) continue;
        const { reason = "Error", exitCode } = end;
        const container = spec?.containers.find((each) => each.name === name);
        const why =
          reason === "OOMKilled" ? memoryWayOut(container?.resources?.limits?.["memory"]) : "";
        return `at that time the container of ${metadata.name} ended: ${reason}, exit code ${exitCode}${why}`;
      }
  }
  return undefined;
}

const memoryWayOut = (limit: string | undefined): string =>
  `; its memory limit${limit === undefined ? "" : ` (${limit})`} is set in spec.resourceConfiguration.function`;
