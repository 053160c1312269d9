import { type UnknownObject } from "@spry/kube";
import { type ResourceType } from "../resources/resource-type.ts";
import { completeCustomObject } from "./custom-object.ts";
import { goForm } from "./go-form.ts";

/** The object in the form of its kind, with what the client left out; the given one may be changed. */
export function completed(type: ResourceType, object: UnknownObject): UnknownObject {
  if (type.custom) {
    completeCustomObject(type, object);
    return object;
  }
  const result = goForm(object, type.schema, "as sent");
  type.strategy.defaults?.(result);
  return result;
}

/** The same without what is not kept: empty lists and maps. */
export function storable(type: ResourceType, object: UnknownObject): UnknownObject {
  return type.custom ? object : goForm(object, type.schema);
}
