import { parseImageName, RegistryClient } from "@spry/image";
import { type Clock } from "@spry/kube";

/** A registry that has not responded is not queried again at every pass. */
const pauseMs = 30_000;
const timeoutMs = 10_000;
const maxRemembered = 1_000;

/**
 * The digest to which an image's tag points now, as `repository@sha256:…`, for Knative Services; undefined when its registry
 * does not report it to a client without a login. `mirrors` are registries under other names, by host.
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
      // Nodes report the reason when they pull the image.
      if (failures.size >= maxRemembered) failures.clear();
      failures.set(image, clock.now());
      return undefined;
    }
  };
}
