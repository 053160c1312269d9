import { type UnknownObject } from "@spry/kube";
import { type ResourceType } from "../resources/resource-type.ts";
import { type Conversions } from "../schema/conversion/conversions.ts";
import { type AdmissionAttributes } from "./attributes.ts";

/** Objects of a request in the version that a webhook or policy wants to see. */
export class ObjectVersions {
  readonly #conversions: Conversions;

  constructor(conversions: Conversions) {
    this.#conversions = conversions;
  }

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

  /** The same object when the versions are the same, else a new one. */
  convert(object: UnknownObject, from: ResourceType, to: ResourceType): Promise<UnknownObject> {
    return this.#conversions.between(object, from, to);
  }
}
