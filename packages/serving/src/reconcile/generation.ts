import { knativeLabels, type Revision } from "@spry/function";

/** Of the Configuration, when it made this Revision; 0 for one that no Configuration has made. */
export function generationOf({ metadata }: Revision): number {
  return Number(metadata.labels?.[knativeLabels.configurationGeneration]) || 0;
}
