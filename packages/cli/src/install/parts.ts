/** What the objects of an installation have in common. */
import { type KubeObject, type UnknownObject } from "@spry/kube";

/** An object as it is applied, with its kind. */
export type InstalledObject = UnknownObject & { apiVersion: string; kind: string };

export const partOf = "spry";

/** By these everything of an installation is found again. */
export const commonLabels = {
  "app.kubernetes.io/part-of": partOf,
  "app.kubernetes.io/managed-by": "spry",
};

export function object(
  apiVersion: string,
  kind: string,
  metadata: KubeObject["metadata"],
  rest: object = {},
): InstalledObject {
  const labels = { ...commonLabels, ...metadata.labels };
  return { apiVersion, kind, metadata: { ...metadata, labels }, ...rest };
}

const user = 1000;

/** Fits the Pod Security level "restricted". */
export const podSecurityContext = {
  runAsUser: user,
  runAsGroup: user,
  fsGroup: user,
  runAsNonRoot: true,
  seccompProfile: { type: "RuntimeDefault" },
};

export const containerSecurityContext = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ["ALL"] },
};
