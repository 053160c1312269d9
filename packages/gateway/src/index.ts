/** The request path: from a host name to a ready Pod of the Function, and back. */
export { createGateway, type Gateway, type GatewayOptions, type ListenOptions } from "./gateway.ts";
export { admissionLeaseName, type AdmissionOptions } from "./admission/admission.ts";
export { type ExposureOptions } from "./exposure/exposure.ts";
export { explain, type Explanation } from "./activation/explanation.ts";
export { type InsideOptions } from "./inside/entrances.ts";
export { type Listening } from "./http/listening.ts";
export { type CallAcceptor, callsPath, type WaitingCall } from "./http/waiting-calls.ts";
export { MemoryBudget } from "./request/memory-budget.ts";
export { postOutside } from "./delivery/post-outside.ts";
export {
  Deliverer,
  type DelivererOptions,
  type DeliveryFailure,
  type DeliveryRequest,
  type DeliveryResponse,
  type DeliveryResult,
  hasReached,
} from "./delivery/deliverer.ts";
export { type ClientRequest, type ClientResponse } from "./http/client-side.ts";
