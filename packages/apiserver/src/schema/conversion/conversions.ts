import { StatusError, type UnknownObject } from "@spry/kube";
import { type WebhookConnections } from "../../admission/webhooks/webhook-connections.ts";
import { ownMessageOf } from "../../errors.ts";
import { copyOf } from "../../json-copy.ts";
import { groupVersionOf, type ResourceType } from "../../resources/resource-type.ts";
import { type StoredObject } from "../../store/stored-object.ts";
import { completed } from "../complete-object.ts";
import { prune } from "../structural.ts";
import { convertByWebhook } from "./conversion-webhook.ts";

/** By type, which a changed definition replaces, and by the version of the object. */
const known = new WeakMap<ResourceType, WeakMap<StoredObject, UnknownObject>>();

/** A stored object in the version of a type: shared, not to be changed. After `prepare` where a webhook converts. */
export function shown(type: ResourceType, stored: StoredObject): UnknownObject {
  const { object } = stored;
  if (!type.conversion || object.apiVersion === groupVersionOf(type)) return locally(type, object);
  const found = known.get(type)?.get(stored);
  if (!found) throw new Error(`${stored.collection} ${stored.key} has not been converted`);
  return found;
}

function locally(type: ResourceType, object: UnknownObject): UnknownObject {
  if (!type.convert) return object;
  const copy = copyOf(object);
  type.convert.fromStorage(copy);
  return copy;
}

/** Between the versions of a resource, by rule or by webhook. */
export class Conversions {
  readonly #connections: WebhookConnections;

  constructor(connections: WebhookConnections) {
    this.#connections = connections;
  }

  /** Makes `shown` possible: converts, in one call, what is not known yet. */
  async prepare(type: ResourceType, objects: readonly StoredObject[]): Promise<void> {
    if (!type.conversion) return;
    const apiVersion = groupVersionOf(type);
    let cache = known.get(type);
    if (!cache) known.set(type, (cache = new WeakMap()));
    const missing = objects.filter(
      (stored) => stored.object.apiVersion !== apiVersion && !cache.has(stored),
    );
    if (missing.length === 0) return;
    const copies = missing.map((stored) => stored.copy());
    const converted = await this.#byWebhook(type, copies, apiVersion);
    for (const [index, object] of converted.entries()) {
      const stored = missing[index];
      if (stored) cache.set(stored, completed(type, object));
    }
  }

  /** As clients of the type see it, shared by all readers: never change it. */
  async seen(type: ResourceType, stored: StoredObject): Promise<UnknownObject> {
    await this.prepare(type, [stored]);
    return shown(type, stored);
  }

  /** A copy to change. */
  async presented(type: ResourceType, stored: StoredObject): Promise<UnknownObject> {
    return copyOf(await this.seen(type, stored));
  }

  /** A changed version of a stored object, whose metadata alone has changed, as clients see it. */
  async presentedWith(
    type: ResourceType,
    stored: StoredObject,
    changed: UnknownObject,
  ): Promise<UnknownObject> {
    if (!type.conversion) return copyOf(locally(type, changed));
    const before = await this.presented(type, stored);
    return { ...before, metadata: copyOf(changed.metadata) };
  }

  /** The object as it is to be stored; the given one may be changed. */
  async toStorage(type: ResourceType, object: UnknownObject): Promise<UnknownObject> {
    const kept = type.conversion ? await this.#one(type, object, type.storageApiVersion) : object;
    if (!type.conversion) type.convert?.toStorage(object);
    const { custom } = type;
    if (custom && custom.storageSchema !== custom.openApiSchema && !custom.preserveUnknownFields) {
      prune(kept, custom.storageSchema);
    }
    return kept;
  }

  /** The object as it would be read if it were stored. */
  async asIfStored(type: ResourceType, object: UnknownObject): Promise<UnknownObject> {
    if (!type.conversion) return object;
    return this.#one(type, await this.toStorage(type, object), groupVersionOf(type));
  }

  /** The same object when the versions are the same, else a new one. */
  async between(
    object: UnknownObject,
    from: ResourceType,
    to: ResourceType,
  ): Promise<UnknownObject> {
    if (from === to) return object;
    if (to.conversion) return this.#one(to, object, groupVersionOf(to));
    const copy = copyOf(object);
    from.convert?.toStorage(copy);
    to.convert?.fromStorage(copy);
    return copy;
  }

  async #one(
    type: ResourceType,
    object: UnknownObject,
    apiVersion: string,
  ): Promise<UnknownObject> {
    if (object.apiVersion === apiVersion) return object;
    const [converted] = await this.#byWebhook(type, [object], apiVersion);
    return converted ?? object;
  }

  async #byWebhook(
    { conversion }: ResourceType,
    objects: UnknownObject[],
    apiVersion: string,
  ): Promise<UnknownObject[]> {
    if (!conversion) return objects;
    try {
      return await convertByWebhook(this.#connections, conversion, objects, apiVersion);
    } catch (cause) {
      const error = new StatusError({ code: 500, message: ownMessageOf(cause) }, { cause });
      // Kubernetes gives such an error no reason.
      delete error.status.reason;
      throw error;
    }
  }
}
