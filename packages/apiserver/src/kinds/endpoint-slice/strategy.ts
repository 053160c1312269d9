import { type Strategy } from "../../resources/resource-type.ts";
import { type EndpointSlice, validateSlice } from "./validation.ts";

/** `pkg/apis/discovery/v1/defaults.go`. */
export const endpointSliceStrategy: Strategy = {
  generation: true,
  generationOf: ["labels"],
  defaults(object) {
    for (const port of (object as EndpointSlice).ports ?? []) {
      port.name ??= "";
      port.protocol ??= "TCP";
    }
  },
  validate: (object, errors, old) =>
    validateSlice(object as EndpointSlice, errors, (old as EndpointSlice | undefined)?.addressType),
};
