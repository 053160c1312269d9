import { functions } from "@spry/function";
import { type KubeClient } from "@spry/kube";
import { listed } from "../listed.ts";
import { type Serverless } from "../serverless/types.ts";
import { type AdmissionRequest, type AdmissionResponse, allow } from "./admission-review.ts";

export const serverlessDeletionPath = "/deletion/serverless";

/**
 * `kubectl delete` waits for what the deletion of the served object waits for, the end of all Functions (contract,
 * section 11.1), without a word: this is the word, at once. The condition `Deleted` says the same later.
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
