/** The state of a Function in words, with the version that still serves where the newest one does not. */
import {
  type Function,
  type FunctionRevision,
  functionRevisions,
  revisionsOf,
} from "@spry/function";
import { type KubeClient } from "@spry/kube";

/** One word for all conditions: what fails first, else what is waited for, else Running. */
export function statusWord(object: Function): string {
  const conditions = object.status?.conditions ?? [];
  const statusOf = (type: string) =>
    conditions.find((condition) => condition.type === type)?.status;
  if (conditions.length === 0) return "Initializing";
  if (statusOf("ConfigurationReady") === "False") return "Invalid";
  if (statusOf("BuildReady") === "False") return "BuildFailed";
  if (statusOf("Running") === "False") return "Failed";
  if (statusOf("BuildReady") !== "True") return "Building";
  return statusOf("Running") === "True" ? "Running" : "Deploying";
}

/** `Failed, version 1 serves`. `newest`: the Function's newest version, where it is known. */
export function shownState(fn: Function, newest: number | undefined): string {
  const word = statusWord(fn);
  const serving = fn.status?.revision;
  if (serving === undefined || !troubled.has(word)) return word;
  // The version that fails now is the one that has served.
  if (word === "Failed" && (newest === undefined || newest === serving)) return word;
  return `${word}, version ${serving} serves`;
}

const troubled = new Set(["Invalid", "BuildFailed", "Failed"]);

/** What `shownState` has to know of all of them: one request, and none where no Function has failed. */
export async function newestVersions(
  client: KubeClient,
  found: readonly Function[],
): Promise<(fn: Function) => number | undefined> {
  const failed = found.filter((fn) => statusWord(fn) === "Failed" && fn.status?.revision);
  const namespaces = new Set(failed.map(({ metadata }) => metadata.namespace));
  const [only] = namespaces;
  if (only === undefined) return () => undefined;
  const where = namespaces.size === 1 ? { namespace: only } : {};
  // A user may not be allowed to read it: then the word stands alone.
  const items = await client.list(functionRevisions, where).then(
    (list): FunctionRevision[] => list.items,
    () => [],
  );
  return (fn) => revisionsOf(fn, items)[0]?.revision;
}
