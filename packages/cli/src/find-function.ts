import {
  type Function,
  type FunctionRevision,
  functionRevisions,
  functions,
  labels,
  revisionsOf,
} from "@spry/function";
import { isNotFound, type KubeClient } from "@spry/kube";
import { UserError } from "./user-error.ts";

/** The Function of this name; a UserError where it does not exist. */
export async function findFunction(
  client: KubeClient,
  namespace: string,
  name: string,
): Promise<Function> {
  try {
    return await client.get(functions, { namespace, name });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw new UserError(
      `Function ${name} not found in namespace ${namespace}`,
      kinds[name.toLowerCase()] ?? "`spry get -A` lists all of them",
    );
  }
}

const byKubectl = "`spry get` shows Functions; kubectl shows other kinds";
/** What kubectl's users write in the place of a name. */
const kinds: Readonly<Record<string, string>> = {
  all: "`spry get` lists Functions, `spry get -A` those of all namespaces",
  pods: "`spry describe FUNCTION` shows a Function's instances; `kubectl get pods` all Pods",
  po: "`spry describe FUNCTION` shows a Function's instances; `kubectl get pods` all Pods",
  secrets: "`spry secrets list` lists Secrets",
  events: "`spry describe FUNCTION` shows a Function's Events",
  subscriptions: "`spry events list` lists Subscriptions",
  revisions: "`spry history FUNCTION` lists versions",
  ...Object.fromEntries(
    "apirules,cm,configmaps,deploy,deployments,jobs,namespaces,nodes,ns,services,svc"
      .split(",")
      .map((name) => [name, byKubectl]),
  ),
};

/** Its history, newest first; a UserError where it is empty. */
export async function findHistory(
  client: KubeClient,
  fn: Function,
): Promise<[FunctionRevision, ...FunctionRevision[]]> {
  const { namespace, name = "" } = fn.metadata;
  const labelSelector = `${labels.functionName}=${name}`;
  const { items } = await client.list(functionRevisions, { namespace, labelSelector });
  const [newest, ...older] = revisionsOf(fn, items);
  if (newest) return [newest, ...older];
  throw new UserError(
    `Function ${name} has no history yet: no version of it has been deployed`,
    `\`spry get ${name}\` shows its state`,
  );
}
