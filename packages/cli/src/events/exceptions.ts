/**
 * What a Function threw for an event that became a dead letter: its callers get no text of an exception, so that a dead letter names
 * the request, and the Function's log has the rest.
 */
import { labels } from "@spry/function";
import { type KubeClient, type Pod, resources } from "@spry/kube";
import { printable } from "../printable.ts";

/** How much of each instance's log is searched, and how many instances. */
const maxBytes = 4 * 1024 * 1024;
const maxPods = 20;
const requestIn = /\(request ([\w.:+/=-]{1,128})\)$/;

export interface Failure {
  message: string;
}

/** The texts with the exception in place of the request's name, where the sink is a Function whose log the user may read. */
export async function explained(
  client: KubeClient,
  { namespace, subscription }: { namespace: string; subscription: string },
  failures: readonly Failure[],
): Promise<string[]> {
  const requests = failures.flatMap(({ message }) => requestIn.exec(message)?.[1] ?? []);
  const logs = requests.length > 0 ? await logsOfSink(client, namespace, subscription) : [];
  return failures.map(({ message }) => {
    const [, request] = requestIn.exec(message) ?? [];
    if (request === undefined) return message;
    const text = logs.map((log) => exceptionIn(log, request)).find((each) => each !== undefined);
    if (text === undefined) return message;
    return message.replace(/(?:Internal server error )?\(request [^)]*\)$/, printable(text));
  });
}

/** The first line of an exception's text: behind the request's name in Node.js, at the end of the traceback in Python. */
export function exceptionIn(log: string, request: string): string | undefined {
  const at = log.indexOf(`request ${request} (`);
  if (at < 0) return undefined;
  const [first = "", ...rest] = log.slice(at).split("\n", 200);
  const [, threw] = /: the handler threw: (.+)$/.exec(first) ?? [];
  if (threw !== undefined) return threw;
  if (!first.endsWith(": calling the function")) return undefined;
  return rest.find((line) => /^\w/.test(line) && !line.startsWith("Traceback "));
}

async function logsOfSink(
  client: KubeClient,
  namespace: string,
  subscription: string,
): Promise<string[]> {
  try {
    const target = `namespaces/${namespace}/subscriptions/${encodeURIComponent(subscription)}`;
    const response = await client.raw("GET", `/apis/eventing.kyma-project.io/v1alpha2/${target}`);
    const { spec } = (await response.json()) as { spec?: { sink?: string } };
    const [name = "", own = namespace] = new URL(spec?.sink ?? "").hostname.split(".");
    const labelSelector = `${labels.functionName}=${name}`;
    const { items } = await client.list(resources.pods, { namespace: own, labelSelector });
    return await Promise.all(items.slice(0, maxPods).map((pod) => logOf(client, pod)));
  } catch {
    // Another receiver, or one that the user may not look at: the request's name stays.
    return [];
  }
}

async function logOf(client: KubeClient, { metadata }: Pod): Promise<string> {
  const { name = "", namespace = "" } = metadata;
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/log?limitBytes=${maxBytes}`;
  return client.raw("GET", path, { accept: "*/*" }).then(
    (response) => response.text(),
    () => "",
  );
}
