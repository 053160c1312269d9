import { type CorsPolicy } from "@spry/function";
import { regexProblem } from "../regex.ts";
import { type Failure, failure } from "./failure.ts";
import { headerName } from "./request.ts";

export function validateCors(policy: CorsPolicy | undefined): Failure[] {
  const path = "spec.corsPolicy";
  const names = (field: "allowHeaders" | "allowMethods" | "exposeHeaders") =>
    (policy?.[field] ?? []).flatMap((name, index) =>
      headerName.test(name) ? [] : [failure(`${path}.${field}[${index}]`, "not a valid name")],
    );
  const origins = (policy?.allowOrigins ?? []).flatMap((match, index) => {
    const at = `${path}.allowOrigins[${index}]`;
    const kinds = Object.keys(match);
    const isKnown = kinds.every((kind) => ["exact", "prefix", "regex"].includes(kind));
    if (kinds.length !== 1 || !isKnown)
      return [failure(at, "an origin is specified with one of exact, prefix, regex")];
    const problem = match.regex === undefined ? undefined : regexProblem(match.regex);
    return problem ? [failure(`${at}.regex`, problem)] : [];
  });
  return [
    ...origins,
    ...names("allowMethods"),
    ...names("allowHeaders"),
    ...names("exposeHeaders"),
  ];
}
