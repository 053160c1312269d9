/** A build that has failed is tried again when its Function is sent again: the cause may have been elsewhere, and gone by now. */
import { annotations, type Function, functions, retryDemandOf } from "@spry/function";
import { type KubeClient } from "@spry/kube";
import { fieldManager } from "./apply-object.ts";

/** `stored`: as the server has just returned it. Returns it as it is afterwards. */
export async function retryFailedBuild(client: KubeClient, stored: Function): Promise<Function> {
  if (!hasFailedBuild(stored)) return stored;
  const { namespace, name = "" } = stored.metadata;
  const demand = { [annotations.retryBuild]: new Date().toISOString() };
  const patch = { metadata: { annotations: demand } };
  return client.patch(functions, { namespace, name }, patch, { fieldManager });
}

/** Whether the failure on record is older than the request for another try: it is not this build's result. */
export const isToBeRetried = (fn: Function): boolean =>
  hasFailedBuild(fn) && retryDemandOf(fn) !== (fn.status?.build?.retriedFor ?? "");

const hasFailedBuild = ({ status }: Function): boolean =>
  status?.conditions?.some(
    ({ type, status: is, reason }) =>
      type === "BuildReady" && is === "False" && reason === "JobFailed",
  ) ?? false;
