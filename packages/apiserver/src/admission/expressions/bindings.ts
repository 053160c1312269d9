import { celValue } from "../../schema/cel-rules.ts";
import { type ResourceType } from "../../resources/resource-type.ts";
import { type AdmissionAttributes, admissionRequest } from "../attributes.ts";
import { type Bindings } from "./expression.ts";

/** `object`, `oldObject` and `request`, made when the first expression looks at a request. */
export function bindingsOf(attributes: AdmissionAttributes, type: ResourceType): Bindings {
  const { object: _, oldObject: __, ...request } = admissionRequest(attributes, type);
  return {
    object: celValue(attributes.object ?? null, undefined),
    oldObject: celValue(attributes.old ?? null, undefined),
    request: celValue(request, undefined),
  };
}
