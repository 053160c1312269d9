import {
  type Clock,
  deepEqual,
  type KubeClient,
  type KubeObject,
  type Logger,
  mergePatchBetween,
  type Resource,
} from "@spry/kube";
import { type Caches } from "../caches.ts";
import { type Settings } from "../settings/settings.ts";
import { type DigestResolver } from "../options.ts";
import { type Places } from "./places.ts";

/** What every reconciler works with. */
export interface Context {
  client: KubeClient;
  caches: Caches;
  settings: Settings;
  clock: Clock;
  log: Logger;
  /** What the URLs of Routes end in. */
  domain: { name: string; port?: number };
  /** Of Services at the gateway; undefined where callers inside have no way to it. */
  places?: Places | undefined;
  /** Reads the digest of an image from its registry; without it only images that name theirs have one in the status. */
  resolveDigest?: DigestResolver | undefined;
}

/** Writes the status if it is another one. A conflict is thrown, and the next pass sees what was faster. */
export async function writeStatus<T extends KubeObject & { status?: object }>(
  client: KubeClient,
  resource: Resource<T>,
  object: T,
  status: NonNullable<T["status"]>,
): Promise<void> {
  if (deepEqual(object.status, status)) return;
  await client.update(resource, { ...object, status }, { subresource: "status" });
}

/** Patches labels, annotations and spec to the desired ones, against the observed version; nothing if they are already. */
export async function writeDesired<T extends KubeObject & { spec?: unknown }>(
  client: KubeClient,
  resource: Resource<T>,
  observed: T,
  desired: T,
): Promise<T> {
  const part = ({ metadata, spec }: T) => ({
    metadata: { labels: metadata.labels ?? {}, annotations: metadata.annotations ?? {} },
    spec,
  });
  const patch = mergePatchBetween(part(observed), part(desired)) as
    | { metadata?: object }
    | undefined;
  if (patch === undefined) return observed;
  const { namespace, name = "", resourceVersion } = observed.metadata;
  const locked = { ...patch, metadata: { ...patch.metadata, resourceVersion } };
  return client.patch(resource, { namespace, name }, locked);
}

/** All entries but those of these keys. */
export function without(
  map: Readonly<Record<string, string>> | undefined,
  keys: readonly string[],
): Record<string, string> {
  return Object.fromEntries(Object.entries(map ?? {}).filter(([key]) => !keys.includes(key)));
}

export const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";

/** As Go's `%q` prints it, for what names may hold. */
export const quoted = (text: string) => JSON.stringify(text);
