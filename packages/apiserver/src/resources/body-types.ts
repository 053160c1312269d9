import { builtin } from "../schema/schema.ts";
import { type ResourceType } from "./resource-type.ts";

/** A kind that only comes as the body of a request, and is stored nowhere. */
function bodyType(group: string, version: string, kind: string, definition: string): ResourceType {
  return {
    group,
    version,
    kind,
    listKind: "",
    plural: "",
    singular: "",
    shortNames: [],
    categories: [],
    namespaced: true,
    collection: "",
    storageApiVersion: "",
    hasStatus: false,
    hasScale: false,
    schema: builtin.definitions[definition] ?? {},
    strategy: {},
  };
}

export const scaleType = bodyType("autoscaling", "v1", "Scale", "io.k8s.api.autoscaling.v1.Scale");
export const bindingType = bodyType("", "v1", "Binding", "io.k8s.api.core.v1.Binding");
export const evictionType = bodyType("policy", "v1", "Eviction", "io.k8s.api.policy.v1.Eviction");
