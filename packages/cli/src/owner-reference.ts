import { functions } from "@spry/function";
import { apiVersionOf, type KubeObject, type OwnerReference } from "@spry/kube";

/** What makes an object go with its Function. */
export function ownerReference({ metadata: { name = "", uid = "" } }: KubeObject): OwnerReference {
  return { apiVersion: apiVersionOf(functions), kind: functions.kind, name, uid };
}
