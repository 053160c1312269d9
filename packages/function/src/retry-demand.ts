import { annotations } from "./labels.ts";

const maxLength = 64;

/**
 * What asks for another try of a build that has failed, on a Function or a Job: the annotation `retry-build`, at most 64 characters
 * of it. Each value is answered by one try.
 */
export function retryDemandOf({
  metadata,
}: {
  metadata: { annotations?: Record<string, string> };
}): string {
  return (metadata.annotations?.[annotations.retryBuild] ?? "").slice(0, maxLength);
}
