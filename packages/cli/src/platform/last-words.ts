/** The requests that a Function's process was handling when it ended by an error, for its log: the gateway knows them. */
import { brokenPath, type BrokenRequest, labels } from "@spry/function";
import { type NodeOptions } from "@spry/machine";

/** The container is not started again before the lines are there. */
const timeoutMs = 1_000;

export function requestsInLog(gateway: {
  /** Of its administration: another one after the gateway ended unexpectedly. */
  url: () => string;
  token: string;
}): NonNullable<NodeOptions["lastWords"]> {
  return async (pod, ip, how) => {
    if (!pod.metadata.labels?.[labels.functionName]) return [];
    const response = await fetch(`${gateway.url()}${brokenPath}?pod=${encodeURIComponent(ip)}`, {
      headers: { authorization: `Bearer ${gateway.token}` },
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (!response.ok) return [];
    const requests = (await response.json()) as BrokenRequest[];
    return requests.map(
      ({ id, method, path }) => `request ${id} (${method} ${path}) was not answered: ${how}`,
    );
  };
}
