import { type CorsPolicy, type StringMatch } from "@spry/function";
import { wholeTextRegex } from "../regex.ts";

/** What a request says about its origin; header values as they came, undefined if they did not. */
export interface CorsRequest {
  method: string;
  origin: string | undefined;
  /** `Access-Control-Request-Method`. */
  requestedMethod: string | undefined;
}

export type CorsDecision =
  /** A preflight from an origin that is allowed: 200 with these headers, and nothing is sent to the Service. */
  | { kind: "preflight"; headers: Record<string, string> }
  /**
   * The request continues; its response gets these headers in place of the Service's own (`corsHeaders`), `vary` in
   * addition to what the Service varies by.
   */
  | { kind: "continue"; headers: Record<string, string> };

/** Removed from the Service's response in every case: a host's policy is its APIRule's. */
export const corsHeaders = [
  "access-control-allow-origin",
  "access-control-allow-credentials",
  "access-control-allow-headers",
  "access-control-allow-methods",
  "access-control-expose-headers",
  "access-control-max-age",
] as const;

export interface CorsDecider {
  decide(request: CorsRequest): CorsDecision;
}

const nothing: CorsDecision = { kind: "continue", headers: {} };

/**
 * Decides as Envoy's CORS filter does with what the original configures. A preflight from another origin is handled
 * like any request. Without a policy, no origin is allowed.
 */
export function createCorsDecider(policy: CorsPolicy | undefined): CorsDecider {
  const origins = (policy?.allowOrigins ?? []).map(matcherOf);
  if (!policy || origins.length === 0) return { decide: () => nothing };
  const isAllowed = (origin: string) => origins.some((matches) => matches("*") || matches(origin));
  const joined = (list: string[] | undefined) => list?.join(",");
  const credentials = policy.allowCredentials ? "true" : undefined;
  const forPreflights = present({
    "access-control-allow-credentials": credentials,
    "access-control-allow-methods": joined(policy.allowMethods),
    "access-control-allow-headers": joined(policy.allowHeaders),
    "access-control-max-age": policy.maxAge?.toString(),
  });
  const forResponses = present({
    "access-control-allow-credentials": credentials,
    "access-control-expose-headers": joined(policy.exposeHeaders),
  });
  return {
    decide({ method, origin, requestedMethod }) {
      // The answer depends on it, and caches must know.
      const vary = "Origin";
      if (!origin || !isAllowed(origin)) return { kind: "continue", headers: { vary } };
      const common = { "access-control-allow-origin": origin, vary };
      return method === "OPTIONS" && requestedMethod
        ? { kind: "preflight", headers: { ...common, ...forPreflights } }
        : { kind: "continue", headers: { ...common, ...forResponses } };
    },
  };
}

/** One that matches `*` allows every origin, as in Envoy. An invalid expression allows none. */
function matcherOf({ exact, prefix, regex }: StringMatch): (text: string) => boolean {
  if (exact !== undefined) return (text) => text === exact;
  if (prefix !== undefined) return (text) => text.startsWith(prefix);
  try {
    const compiled = wholeTextRegex(regex ?? "");
    return (text) => compiled.test(text);
  } catch {
    return () => false;
  }
}

function present(headers: Record<string, string | undefined>): Record<string, string> {
  const entries = Object.entries(headers).filter(
    ([, value]) => value !== undefined && value !== "",
  );
  return Object.fromEntries(entries) as Record<string, string>;
}
