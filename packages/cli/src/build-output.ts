/** What the containers of a Function's build, and those that start afterwards, write, npm and pip among them, line by line as it comes. */
import { labels, names } from "@spry/function";
import { isNotFound, type KubeClient, type Pod, resources, type Target } from "@spry/kube";

const lookMs = 400;
/** A build of a few files is over by then, and requests would only be in its way. */
const firstLookMs = 200;
/** A Function that needs longer has something to say. */
const slowStartMs = 2000;
const maxLineLength = 4096;

interface Build {
  namespace: string;
  name: string;
  onLine: (line: string) => void;
}

/** Until `signal`. It only accompanies a build: what cannot be read is left out, and the result is in the Function's conditions. */
export async function followBuildOutput(
  client: KubeClient,
  { namespace, name, onLine }: Build,
  signal: AbortSignal,
): Promise<void> {
  const labelSelector = `${labels.functionName}=${name},${labels.resource}!=deployment`;
  const list = async () => {
    const { items } = await client.list(resources.pods, { namespace, labelSelector, signal });
    return items;
  };
  const read = new Set<string>();
  try {
    await pause(firstLookMs, signal);
    if (signal.aborted) return;
    // What has been built before is another build.
    const before = await list();
    for (const pod of before) if (hasEnded(pod)) read.add(pod.metadata.uid ?? "");
    while (!signal.aborted) {
      for (const pod of await list()) {
        const { uid = "" } = pod.metadata;
        if (read.has(uid)) continue;
        read.add(uid);
        void readPod(client, pod, onLine, signal).catch(() => {});
      }
      await pause(lookMs, signal);
    }
  } catch {
    // The command continues without it.
  }
}

/** What the newest instances write that are not ready after a while: why they are not is in it. Until `signal`. */
export async function followStartOutput(
  client: KubeClient,
  { namespace, name, onLine }: Build,
  signal: AbortSignal,
): Promise<void> {
  const labelSelector = `${labels.functionName}=${name},${labels.resource}=deployment`;
  const read = new Set<string>();
  try {
    await pause(slowStartMs, signal);
    while (!signal.aborted) {
      const { items } = await client.list(resources.pods, { namespace, labelSelector, signal });
      for (const pod of items.filter(isStarting)) {
        const { uid = "" } = pod.metadata;
        if (read.has(uid)) continue;
        read.add(uid);
        void readContainer(client, pod, names.container, onLine, signal).catch(() => {});
      }
      await pause(lookMs, signal);
    }
  } catch {
    // The command continues without it.
  }
}

const isStarting = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined &&
  status?.phase === "Running" &&
  !status.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");

const hasEnded = ({ status }: Pod): boolean =>
  status?.phase === "Succeeded" || status?.phase === "Failed";

/** Its steps, one after the other. */
async function readPod(
  client: KubeClient,
  pod: Pod,
  onLine: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  for (const container of stepsOf(pod))
    if (await untilBegun(client, pod, container, signal))
      await readContainer(client, pod, container, onLine, signal);
}

async function readContainer(
  client: KubeClient,
  { metadata: { namespace = "", name = "" } }: Pod,
  container: string,
  onLine: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const query = new URLSearchParams({ container, follow: "true" });
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/log?${query}`;
  const response = await client.raw("GET", path, { accept: "*/*", signal });
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = (lines.pop() ?? "").slice(-maxLineLength);
    for (const line of lines) if (line.trim() !== "") onLine(line.slice(0, maxLineLength));
  }
  if (rest.trim() !== "") onLine(rest);
}

/** The names of its containers, in the order in which they run. */
export const stepsOf = ({ spec }: Pod): string[] =>
  [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(({ name }) => name);

/** Whether a container of this Pod runs or has run. */
export function hasStarted({ status }: Pod, container: string): boolean {
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const state = all.find(({ name }) => name === container)?.state;
  return state?.running !== undefined || state?.terminated !== undefined;
}

/** True once it has started; false when its Pod has ended without it, or at `signal`. */
export async function untilBegun(
  client: KubeClient,
  { metadata: { namespace = "", name = "" } }: Pod,
  container: string,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    const pod = await find(client, { namespace, name });
    if (pod && hasStarted(pod, container)) return true;
    if (!pod || hasEnded(pod)) return false;
    await pause(lookMs, signal);
  }
  return false;
}

async function find(client: KubeClient, target: Target): Promise<Pod | undefined> {
  try {
    return await client.get(resources.pods, target);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
