import { type ExposedRule } from "@spry/function";

/**
 * The headers that a rule sets on the request to its Service, its cookies among them; names in lower case. `%REQ(name)%`
 * in a value is the value of a header of the request, and `%%` a percent sign (Envoy's formats, of which the original's
 * samples use this one).
 * @param header the value of a header of the request, its name in lower case
 */
export function requestChanges(
  { requestHeaders, requestCookies }: Pick<ExposedRule, "requestHeaders" | "requestCookies">,
  header: (name: string) => string | undefined,
): Record<string, string> {
  const changes: Record<string, string> = {};
  for (const [name, value] of Object.entries(requestHeaders))
    changes[name.toLowerCase()] = formatted(value, header);
  const cookies = Object.entries(requestCookies).map(([name, value]) => `${name}=${value}`);
  if (cookies.length > 0) changes["cookie"] = cookies.join("; ");
  return changes;
}

function formatted(value: string, header: (name: string) => string | undefined): string {
  return value.replace(
    /%%|%REQ\(([A-Za-z0-9!#$&'*+\-.^_`|~]+)\)%/g,
    (text, name: string | undefined) =>
      name === undefined ? "%" : (header(name.toLowerCase()) ?? ""),
  );
}
