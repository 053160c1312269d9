import { type Strategy } from "../../resources/resource-type.ts";
import { validateIngress } from "./validation.ts";

export const ingressStrategy: Strategy = {
  generation: true,
  prepare: (object, { old }) => void (old ? undefined : (object.status = { loadBalancer: {} })),
  validate: (object, errors) => validateIngress(object.spec ?? {}, errors),
};
