import { parseImageName, RegistryClient } from "@spry/image";
import { type Clock } from "@spry/kube";

/** A registry that has not answered is not asked again at every pass. */
const pauseMs = 30_000;
const timeoutMs = 10_000;
const maxRemembered = 1_000;

/**
 * What the tag of an image means now, `repository@sha256:…`, for Knative Services; undefined where its registry does not say so
 * without a login. `mirrors` are registries under other names, by host.
 */
export function createDigestResolver(
  mirrors: Readonly<Record<string, { url: string }>>,
  clock: Clock,
): (image: string) => Promise<string | undefined> {
  const failures = new Map<string, number>();
  const client = new RegistryClient({ resolve: (host) => mirrors[host] });

  async function resolve(image: string): Promise<string> {
    const name = parseImageName(image);
    const { digest } = await client.getManifest(name, { signal: AbortSignal.timeout(timeoutMs) });
    return `${name.host}/${name.repository}@${digest}`;
  }

  return async (image) => {
    const failedAt = failures.get(image);
    if (failedAt !== undefined && clock.now() - failedAt < pauseMs) return undefined;
    try {
      return await resolve(image);
    } catch {
      // The nodes say why, when they pull it.
      if (failures.size >= maxRemembered) failures.clear();
      failures.set(image, clock.now());
      return undefined;
    }
  };
}
