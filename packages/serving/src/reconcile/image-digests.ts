import { type Revision } from "@spry/function";
import { type Container } from "@spry/kube";
import { type Context } from "./context.ts";
import { type Digests } from "./deployment.ts";

type Statuses = { name?: string; imageDigest?: string }[];

/**
 * The digests that a Revision's containers run. They are resolved once and kept in its status: a Revision is immutable, and a
 * tag may move. Without `resolveDigest`, and where a registry does not say, the image runs as it is named.
 */
export async function imageDigests(
  { resolveDigest }: Context,
  { metadata, spec, status }: Revision,
): Promise<{ statuses: Statuses; initStatuses: Statuses; byContainer: Digests }> {
  const byContainer = new Map<string, string>();
  const pods = { metadata: { namespace: metadata.namespace ?? "" }, spec };
  const read = async (containers: readonly Container[] = [], known: Statuses = []) => {
    const statuses: Statuses = [];
    for (const { name, image = "" } of containers) {
      const before = known.find((each) => each.name === name)?.imageDigest;
      const own = image.includes("@sha256:") ? image : undefined;
      const digest = before ?? own ?? (await resolveDigest?.(image, pods));
      if (digest) byContainer.set(name, digest);
      statuses.push({ name, ...(digest ? { imageDigest: digest } : {}) });
    }
    return statuses;
  };
  return {
    statuses: await read(spec.containers, status?.containerStatuses),
    initStatuses: await read(spec.initContainers, status?.initContainerStatuses),
    byContainer,
  };
}
