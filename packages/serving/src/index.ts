/** Knative Serving API v1 without sidecars: Service, Configuration, Revision, Route, and the scaler that requests drive. */
export { type GatewayAddressing, type ServingOptions } from "./options.ts";
