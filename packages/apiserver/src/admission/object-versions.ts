import { type UnknownObject } from "@spry/kube";
import { copyOf } from "../json-copy.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { type AdmissionAttributes } from "./attributes.ts";

/** Objects of a request in the version that somebody wants to see. */
export class ObjectVersions {
  async attributesIn(
    attributes: AdmissionAttributes,
    type: ResourceType,
  ): Promise<AdmissionAttributes> {
    const { request, object, old } = attributes;
    if (type === request.type) return attributes;
    return {
      ...attributes,
      object: object && (await this.convert(object, request.type, type)),
      old: old && (await this.convert(old, request.type, type)),
    };
  }

  /** An object as it is stored, in a version that is served. */
  async fromStorage(object: UnknownObject, type: ResourceType): Promise<UnknownObject> {
    const copy = copyOf(object);
    type.convert?.fromStorage(copy);
    return copy;
  }

  /** The same object when the versions are the same, else a new one. */
  async convert(
    object: UnknownObject,
    from: ResourceType,
    to: ResourceType,
  ): Promise<UnknownObject> {
    if (from === to) return object;
    const copy = copyOf(object);
    from.convert?.toStorage(copy);
    to.convert?.fromStorage(copy);
    return copy;
  }
}
