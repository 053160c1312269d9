/** Versions of kinds of the original's that its own clusters no longer serve: what takes their place. */

interface Retired {
  successor: string;
  /** What has to change besides `apiVersion`. */
  changes: string;
}

const retired: Record<string, Retired> = {
  "gateway.kyma-project.io/v1alpha1 APIRule": {
    successor: "gateway.kyma-project.io/v1beta1",
    changes: "move spec.service.host to spec.host",
  },
};

/** How to write a manifest of a version that is no longer served; undefined for others. */
export function successorOf(apiVersion: string, kind: string): string | undefined {
  const found = retired[`${apiVersion} ${kind}`];
  return found && `write apiVersion: ${found.successor}, and ${found.changes} (docs/migration.md)`;
}
