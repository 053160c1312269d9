import { names } from "@spry/function";
import { type Clock, type ObjectKey, type Pod } from "@spry/kube";

/**
 * If a registry keeps losing an image, or is not the one that was pushed to, builds for it are not repeated without a
 * pause.
 */
const pauseMs = 10 * 60_000;

/** What kubelets pass on from registries: error codes of the OCI distribution specification, and containerd's words. */
const gone = /\b(?:MANIFEST_UNKNOWN|NAME_UNKNOWN|BLOB_UNKNOWN|manifest unknown|not found)\b/i;

/**
 * Functions whose image is built again because nodes do not find it in the registry any more. In memory alone: after
 * a restart the Pods still say so.
 */
export class LostImages {
  readonly #clock: Clock;
  readonly #records = new Map<ObjectKey, { buildKey: string; since: number; isBuilt: boolean }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether a build is to begin: Pods do not find the image, and this was not tried a moment ago. */
  begin(key: ObjectKey, buildKey: string, image: string, pods: readonly Pod[]): boolean {
    const before = this.#records.get(key);
    const now = this.#clock.elapsed();
    if (before?.buildKey === buildKey && now - before.since < pauseMs) return false;
    if (!pods.some((pod) => lacks(pod, image))) return false;
    this.#records.set(key, { buildKey, since: now, isBuilt: false });
    return true;
  }

  /** Whether it has begun and not ended: what was known of the image does not count. */
  isUnderWay(key: ObjectKey, buildKey: string): boolean {
    const record = this.#records.get(key);
    return record?.buildKey === buildKey && !record.isBuilt;
  }

  built(key: ObjectKey): void {
    const record = this.#records.get(key);
    if (record) record.isBuilt = true;
  }

  forget(key: ObjectKey): void {
    this.#records.delete(key);
  }
}

function lacks({ metadata, spec, status }: Pod, image: string): boolean {
  if (metadata.deletionTimestamp) return false;
  const container = spec?.containers.find(({ name }) => name === names.container);
  if (container?.image !== image) return false;
  const { reason = "", message = "" } =
    status?.containerStatuses?.find(({ name }) => name === names.container)?.state?.waiting ?? {};
  return ["ErrImagePull", "ImagePullBackOff"].includes(reason) && gone.test(message);
}
