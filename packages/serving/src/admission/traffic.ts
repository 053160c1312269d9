import { type TrafficTarget } from "@spry/function";
import { FieldErrors } from "./field-error.ts";
import { label1035Problems, qualifiedNameProblem } from "./names.ts";

/** More entries are refused: each tag is a host, a Service and an address. */
const maxTargets = 100;

/**
 * `spec.traffic` (knative.dev/serving/pkg/apis/serving/v1/route_validation.go). In a Service the Configuration is its own, and
 * must not be named.
 */
export function checkTraffic(
  traffic: readonly TrafficTarget[],
  options: { ofService: boolean },
): FieldErrors {
  const errors = new FieldErrors();
  if (traffic.length > maxTargets)
    return errors.add(
      `expected at most ${maxTargets} traffic targets, got ${traffic.length}`,
      "traffic",
    );
  const tags = new Map<string, number>();
  let sum = 0;
  for (const [i, target] of traffic.entries()) {
    errors.via(`traffic[${i}]`, checkTarget(target, options.ofService));
    sum += target.percent ?? 0;
    const { tag } = target;
    if (!tag) continue;
    const problems = label1035Problems(tag);
    if (problems) errors.invalid(`not a DNS 1035 label: ${problems}`, `traffic.tag[${i}]`);
    const first = tags.get(tag);
    if (first !== undefined)
      errors.add(`Multiple definitions for ${JSON.stringify(tag)}`, [
        `traffic[${i}].tag`,
        `traffic[${first}].tag`,
      ]);
    else tags.set(tag, i);
  }
  if (sum !== 100) errors.add(`Traffic targets sum to ${sum}, want 100`, "traffic");
  return errors;
}

function checkTarget(target: TrafficTarget, ofService: boolean): FieldErrors {
  const errors = new FieldErrors();
  const { revisionName = "", configurationName = "", latestRevision, percent, url } = target;
  if (latestRevision !== undefined && (revisionName !== "") === latestRevision)
    errors.add(
      `may not set revisionName ${JSON.stringify(revisionName)} when latestRevision is ${latestRevision}`,
      "latestRevision",
    );
  if (ofService && configurationName) errors.disallowed("configurationName");
  else if (revisionName && configurationName)
    errors.multipleOneOf("revisionName", "configurationName");
  else if (revisionName) checkName(errors, revisionName, "revisionName");
  else if (configurationName) checkName(errors, configurationName, "configurationName");
  else if (!ofService) errors.missingOneOf("revisionName", "configurationName");
  if (percent !== undefined && (percent < 0 || percent > 100))
    errors.outOfBounds(percent, 0, 100, "percent");
  if (url) errors.disallowed("url");
  return errors;
}

function checkName(errors: FieldErrors, name: string, path: string): void {
  const problem = qualifiedNameProblem(name);
  if (problem) errors.invalidKey(name, path, problem);
}
