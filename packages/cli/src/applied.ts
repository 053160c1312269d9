/** What became of an object that was applied. */
import { isDeepStrictEqual } from "node:util";
import {
  isForbidden,
  isNotFound,
  type KubeClient,
  type Resource,
  type UnknownObject,
} from "@spry/kube";

/** The object as it was; undefined where it did not exist, `null` where the user may not read it. */
export async function found(
  client: KubeClient,
  resource: Resource<UnknownObject>,
  { metadata: { name = "", namespace } }: UnknownObject,
): Promise<UnknownObject | undefined | null> {
  const target = { name, ...(namespace !== undefined && { namespace }) };
  try {
    return await client.get(resource, target);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    if (isForbidden(error)) return null;
    throw error;
  }
}

/** `created`, `changed`, `unchanged` or `applied`. A status written in between does not count as a change. */
export function becameOf(before: UnknownObject | undefined | null, after: UnknownObject): string {
  if (before === undefined) return "created";
  if (before === null) return "applied";
  const isSame =
    before.metadata.resourceVersion === after.metadata.resourceVersion ||
    (after.metadata.generation !== undefined &&
      before.metadata.generation === after.metadata.generation &&
      isDeepStrictEqual(marksOf(before), marksOf(after)));
  return isSame ? "unchanged" : "changed";
}

const marksOf = ({ metadata: { labels = {}, annotations = {} } }: UnknownObject) => ({
  labels,
  annotations,
});
