/** A request to a Function as it is typed in the console, and as a command for elsewhere. */

export interface CallRequest {
  method: string;
  path: string;
  /** One `Name: value` per line. */
  headers: string;
  body: string;
}

export function headersOf(text: string): [string, string][] {
  return text.split("\n").flatMap((line): [string, string][] => {
    const colon = line.indexOf(":");
    if (colon < 1) return [];
    return [[line.slice(0, colon).trim(), line.slice(colon + 1).trim()]];
  });
}

/** The path as it was typed: read as a URL, `//host` would be another host, and `/a/../b` another path. */
const urlFor = (base: string, path: string): string =>
  base.replace(/\/$/, "") + (path.startsWith("/") ? path : `/${path}`);

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The same request for a terminal or a program. */
export const asCommand = {
  curl: (url: string, { method, path, headers, body }: CallRequest): string =>
    [
      "curl -i",
      ...(method === "GET" ? [] : [`-X ${method}`]),
      ...headersOf(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
      ...(body && method !== "GET" ? [`--data-binary ${quoted(body)}`] : []),
      quoted(urlFor(url, path)),
    ].join(" "),
  fetch: (url: string, { method, path, headers, body }: CallRequest): string =>
    `await fetch(${JSON.stringify(urlFor(url, path))}, ${JSON.stringify(
      {
        method,
        headers: Object.fromEntries(headersOf(headers)),
        ...(body && method !== "GET" && { body }),
      },
      null,
      2,
    )});`,
  kubectl: (
    { namespace, name }: { namespace: string; name: string },
    { method, path, headers, body }: CallRequest,
  ): string =>
    [
      `kubectl port-forward -n ${namespace} service/${name} 3000:80 &`,
      asCommand.curl("http://localhost:3000/", { method, path, headers, body }),
    ].join("\n"),
};
