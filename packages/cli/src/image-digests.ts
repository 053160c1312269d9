import { parseImageName, RegistryClient } from "@spry/image";
import {
  type Clock,
  type HostPort,
  type KubeClient,
  OutboundGuard,
  pullCredentials,
} from "@spry/kube";
import { type DigestResolver } from "@spry/serving";

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
  /** Certificates (PEM) of an authority to trust at every registry. */
  authority?: string | undefined;
  /** The operator's registries on this machine: on one machine the node agent pulls from them, too. Default none. */
  allowedLoopback?: readonly HostPort[];
  clock: Clock;
}

/**
 * The digest to which an image's tag points now, as `repository@sha256:…`, for Knative Services; undefined when its registry does not report
 * it to who may pull for these Pods. Only the digest of what is a manifest leaves the resolver, and no reason: who names an
 * image learns nothing of what else answers at its host.
 */
export function createDigestResolver(options: DigestResolverOptions): DigestResolver {
  const { client, mirrors = {}, plain = () => [], authority, allowedLoopback, clock } = options;
  const failures = new Map<string, number>();
  // Where a registry sends us, to an authorization service for example, is its choice: it is looked at in the same way.
  const guard = new OutboundGuard({ allowPrivate: true, allowed: allowedLoopback });

  const resolve: DigestResolver = async (image, pods) => {
    const name = parseImageName(image);
    const credentials = await pullCredentials(client, pods);
    const loginAt = (host: string) => credentials?.find(host, name.repository);
    const registry = new RegistryClient({
      resolve: (host) => mirrors[host] && { ...mirrors[host], ...loginAt(host) },
      credentials: loginAt,
      plain: plain(),
      authority,
      attempts: 2,
      ...(mirrors[name.host] ? {} : { guard }),
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
