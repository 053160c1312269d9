import { parseImageName, RegistryClient } from "@spry/image";
import { type Clock, type KubeClient, pullCredentials } from "@spry/kube";
import { type DigestResolver } from "@spry/serving";
import { isInternal } from "@spry/source";

/** A registry that has not responded is not queried again at every pass. */
const pauseMs = 30_000;
const timeoutMs = 10_000;
const maxRemembered = 1_000;

export interface DigestResolverOptions {
  /** Reads the Pods' Secrets of registry credentials. */
  client: KubeClient;
  /** Registries under other names, by host. */
  mirrors?: Readonly<Record<string, { url: string }>>;
  /** Hosts that are spoken to without TLS. */
  plain?: () => readonly string[];
  /**
   * False on a cluster: the node pulls the image, so the registry cannot be this Pod itself, its node or a cloud's metadata
   * service.
   */
  mayUseLoopback: boolean;
  clock: Clock;
}

/**
 * The digest to which an image's tag points now, as `repository@sha256:…`, for Knative Services; undefined when its registry does not report
 * it to who may pull for these Pods. Only the digest of what is a manifest leaves the resolver, and no reason: who names an
 * image learns nothing of what else answers at its host.
 */
export function createDigestResolver(options: DigestResolverOptions): DigestResolver {
  const { client, mirrors = {}, plain = () => [], mayUseLoopback, clock } = options;
  const failures = new Map<string, number>();

  const resolve: DigestResolver = async (image, pods) => {
    const name = parseImageName(image);
    const { hostname: own } = new URL(`https://${name.host}`);
    // Where the registry sends us, to an authorization service for example, is its choice, and not ours.
    const mayReach = (address: string, hostname: string) =>
      (mayUseLoopback && hostname === own.replace(/^\[|\]$/g, "")) || !isInternal(address);
    const credentials = await pullCredentials(client, pods);
    const loginAt = (host: string) => credentials?.find(host, name.repository);
    const registry = new RegistryClient({
      resolve: (host) => mirrors[host] && { ...mirrors[host], ...loginAt(host) },
      credentials: loginAt,
      plain: plain(),
      attempts: 2,
      ...(mirrors[name.host] ? {} : { mayReach }),
    });
    const { digest } = await registry.getManifest(name, { signal: AbortSignal.timeout(timeoutMs) });
    return `${name.host}/${name.repository}@${digest}`;
  };

  return async (image, pods) => {
    const key = `${pods.metadata.namespace}/${image}`;
    const failedAt = failures.get(key);
    if (failedAt !== undefined && clock.elapsed() - failedAt < pauseMs) return undefined;
    try {
      return await resolve(image, pods);
    } catch {
      // Nodes report the reason when they pull the image.
      if (failures.size >= maxRemembered) failures.clear();
      failures.set(key, clock.elapsed());
      return undefined;
    }
  };
}
