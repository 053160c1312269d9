import { type Strategy } from "../../resources/resource-type.ts";
import { type ApiService, defaultServicePort } from "./api-service.ts";
import { validateApiService } from "./validation.ts";

/** `kube-aggregator/pkg/registry/apiservice`, `pkg/apis/apiregistration/v1/defaults.go`. */
export const apiServiceStrategy: Strategy = {
  nameRule: "path",
  defaults(object) {
    const { service } = (object as ApiService).spec ?? {};
    if (service) service.port ??= defaultServicePort;
  },
  prepare(object, { old }) {
    if (!old) object.status = {};
  },
  validate: (object, errors, old, subresource) =>
    validateApiService(object as ApiService, errors, old, subresource),
};
