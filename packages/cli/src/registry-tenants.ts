import { type Tenants } from "@spry/image";
import { isNotFound, type KubeClient, type KubeObject, type Resource, resources } from "@spry/kube";

/** An API server that does not respond is treated like one that does not exist: nodes wait for their images meanwhile. */
const patienceMs = 2_000;

/** What the registry asks the cluster about those who log in. It needs the right to get namespaces and Jobs. */
export function tenantsOf(client: KubeClient): Tenants {
  const find = async <T extends KubeObject>(
    resource: Resource<T>,
    target: { namespace?: string; name: string },
  ): Promise<T | undefined> => {
    try {
      return await client.get(resource, { ...target, signal: AbortSignal.timeout(patienceMs) });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };
  return {
    async namespaceUid(name) {
      return (await find(resources.namespaces, { name }))?.metadata.uid;
    },
    async isJobActive({ namespace, name, uid }) {
      const job = await find(resources.jobs, { namespace, name });
      if (job?.metadata.uid !== uid || job.metadata.deletionTimestamp) return false;
      const conditions = job.status?.conditions ?? [];
      return !conditions.some(
        ({ type, status }) => (type === "Complete" || type === "Failed") && status === "True",
      );
    },
  };
}
