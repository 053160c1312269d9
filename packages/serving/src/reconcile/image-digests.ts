import { type Revision } from "@spry/function";
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
): Promise<{ statuses: Statuses; byContainer: Digests }> {
  const byContainer = new Map<string, string>();
  const statuses: Statuses = [];
  for (const { name, image = "" } of spec.containers ?? []) {
    const known = status?.containerStatuses?.find((each) => each.name === name)?.imageDigest;
    const own = image.includes("@sha256:") ? image : undefined;
    const digest = known ?? own ?? (await resolveDigest?.(image, metadata.namespace ?? ""));
    if (digest) byContainer.set(name, digest);
    statuses.push({ name, ...(digest ? { imageDigest: digest } : {}) });
  }
  return { statuses, byContainer };
}
