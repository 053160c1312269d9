/** Kubernetes machinery: what any controller or client of the Kubernetes API needs, and nothing of Spry. */
export * from "./objects.ts";
export * from "./resources.ts";
export * from "./errors.ts";
export * from "./transport.ts";
export * from "./client.ts";
export * from "./clock.ts";
export * from "./log.ts";
export * from "./informer.ts";
export * from "./work-queue.ts";
export * from "./controller.ts";
