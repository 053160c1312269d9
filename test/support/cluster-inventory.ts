/** What there is in a cluster, to see what has been left behind. */
import { isNotFound, type KubeClient, type KubeObject } from "@spry/kube";

interface ResourceList {
  groupVersion: string;
  resources: { name: string; kind: string; verbs: string[] }[];
}
interface GroupList {
  groups: { preferredVersion: { groupVersion: string } }[];
}

const passing = new Set(["Event", "Lease", "ComponentStatus", "EndpointSlice", "IPAddress"]);

/** `kind namespace/name` of everything there is, except what comes and goes by itself. */
export async function inventory(client: KubeClient): Promise<string[]> {
  const json = async <T>(url: string) => (await (await client.raw("GET", url)).json()) as T;
  const { groups } = await json<GroupList>("/apis");
  const lists = [await json<ResourceList>("/api/v1")];
  for (const { preferredVersion } of groups) {
    lists.push(await json<ResourceList>(`/apis/${preferredVersion.groupVersion}`));
  }
  const found: string[] = [];
  for (const list of lists) {
    for (const { name, kind, verbs } of list.resources) {
      if (name.includes("/") || !verbs.includes("list") || passing.has(kind)) continue;
      const base = list.groupVersion === "v1" ? "/api/v1" : `/apis/${list.groupVersion}`;
      const answer = await json<{ items: KubeObject[] }>(`${base}/${name}`).catch(
        (error: unknown) => {
          if (isNotFound(error)) return { items: [] };
          throw error;
        },
      );
      for (const { metadata } of answer.items) {
        found.push(`${kind} ${metadata.namespace ?? ""}/${metadata.name}`);
      }
    }
  }
  return found.sort();
}
