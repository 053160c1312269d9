import { functions } from "@spry/function";
import { type KubeClient } from "@spry/kube";
import { listed } from "../listed.ts";
import { type Serverless } from "../serverless/types.ts";
import { type AdmissionRequest, type AdmissionResponse, allow } from "@spry/kube";

export const serverlessDeletionPath = "/deletion/serverless";

/**
 * The deletion of the served object waits until all Functions are deleted (docs/compatibility.md#serverless-object), and
 * `kubectl delete` waits silently with it: this warns at once. The condition `Deleted` reports the same later.
 */
export async function warnOfFunctions(
  { operation, oldObject }: AdmissionRequest,
  client: KubeClient,
): Promise<AdmissionResponse> {
  const served = (oldObject as Serverless | undefined)?.status?.served;
  if (operation !== "DELETE" || served === "False") return allow();
  const { items } = await client.list(functions);
  if (items.length === 0) return allow();
  const names = listed(items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`));
  return allow([`the deletion waits until these Functions are deleted: ${names}`]);
}
