import { type Subscription } from "@spry/function";
import { bounds } from "../bounds.ts";
import { fullName, hasEmptySegment, hasPrefix } from "../events/names.ts";
import { deliveryProblems, filtersProblem, shown } from "./extensions.ts";
import { type Sink } from "./plan.ts";

const suffix = "svc.cluster.local";
/** RFC 3986, as far as the original checks it. */
const uriReference = /^[^\s"<>\\^`{|}]*$/;

/** What a Subscription says wrong by itself, in the original's form: `spec.sink: Invalid value: "…": must …`. */
export function problemsOf(subscription: Subscription): string[] {
  const { spec, metadata } = subscription;
  const problems: string[] = [];
  const wrong = (path: string, value: string, detail: string) =>
    problems.push(`${path}: Invalid value: ${JSON.stringify(value.slice(0, 500))}: ${detail}`);
  const { source = "", types, typeMatching = "standard", config = {} } = spec;
  const isExact = typeMatching === "exact";
  if (source === "" && !isExact) wrong("spec.source", source, "must not be empty");
  if (!uriReference.test(source)) wrong("spec.source", source, "must be valid as per RFC 3986");
  if (types.length === 0) wrong("spec.types", "", "must not be empty");
  const twice = types.filter((type, index) => types.indexOf(type) !== index);
  if (twice.length > 0)
    wrong("spec.types", [...new Set(twice)].join(","), "must not have duplicate types");
  for (const type of types) {
    if (type === "") wrong("spec.types", type, "must not be of length zero");
    else if (type.split(".").length < 2) wrong("spec.types", type, "must have minimum 2 segments");
    else if (!isExact && hasPrefix(type))
      wrong("spec.types", type, "must not have sap.kyma.custom as type prefix");
    else if (!isExact && source !== "" && hasEmptySegment(fullName(source, type)))
      wrong("spec.types", type, "must not have empty segments");
  }
  const inFlight = config["maxInFlightMessages"];
  if (inFlight !== undefined && !/^[+-]?\d+$/.test(inFlight))
    wrong("spec.config", inFlight, "maxInFlightMessages must be a stringified int value");
  else if (inFlight !== undefined && !isWithin(Number(inFlight), 1, bounds.inFlight))
    wrong("spec.config", inFlight, `maxInFlightMessages must be from 1 to ${bounds.inFlight}`);
  const sink = readSink(spec.sink ?? "", metadata.namespace ?? "");
  if ("problem" in sink) wrong(sink.path, spec.sink ?? "", sink.problem);
  // The definition says so, too; but not of what v1alpha1 keeps of v1alpha2 in an annotation.
  const filters = filtersProblem(spec.filters);
  if (filters !== undefined) wrong("spec.filters", shown(spec.filters), filters);
  for (const [path, value, detail] of deliveryProblems(spec.delivery)) wrong(path, value, detail);
  return problems;
}

const isWithin = (value: number, least: number, most: number) => value >= least && value <= most;

/** Where events go; its Service is of the Subscription's own namespace. */
export function readSink(
  sink: string,
  namespace: string,
): Sink | { path: string; problem: string } {
  const problem = (text: string, path = "spec.sink") => ({ path, problem: text });
  if (sink === "") return problem("must not be empty");
  if (!/^https?:\/\//.test(sink)) return problem("must have URL scheme 'http' or 'https'");
  let url: URL;
  try {
    url = new URL(sink);
  } catch {
    return problem("not a valid URL");
  }
  if (url.protocol === "https:")
    return problem("https is not supported inside the cluster; write http://");
  if (url.username !== "" || url.password !== "") return problem("must not have credentials");
  const host = url.hostname;
  if (!host.endsWith(suffix)) return problem(`must have valid sink URL suffix ${suffix}`);
  const parts = host.split(".");
  if (parts.length !== 5) return problem(`must have sink URL with 5 sub-domains: ${host}`);
  const [name = "", owner = ""] = parts;
  if (owner !== namespace)
    return problem(
      `must have the same namespace as the subscriber: ${owner}`,
      "metadata.namespace",
    );
  return {
    namespace,
    name,
    port: url.port === "" ? 80 : Number(url.port),
    path: `${url.pathname}${url.search}`,
  };
}
