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

/** They belong to a connection, or name the Function: the dashboard's server sets them. */
const notPassedOn =
  /^(?:connection|content-length|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;
const maxHeaders = 100;

/** Which lines cannot be sent as headers, and why; undefined when all can. */
export function headerProblem(text: string): string | undefined {
  const lines = text.split("\n").flatMap((line, at) => (line.trim() ? [{ line, at: at + 1 }] : []));
  if (lines.length > maxHeaders) return `at most ${maxHeaders} headers can be sent`;
  const problems = lines.flatMap(({ line, at }) => {
    const problem = lineProblem(line);
    return problem === undefined ? [] : [`line ${at}: ${problem}`];
  });
  return problems.length > 0 ? problems.join("\n") : undefined;
}

function lineProblem(line: string): string | undefined {
  const [[name, value] = ["", ""]] = headersOf(line);
  if (name === "") return "a header is a name, a colon and a value";
  if (!/^[\w!#$%&'*+.^`|~-]{1,256}$/.test(name)) return `${name} is not a valid name of a header`;
  if (notPassedOn.test(name))
    return `${name} is set by the dashboard, and cannot be sent from here`;
  if (!/^[\t\x20-\x7e\x80-\xff]{0,8192}$/.test(value))
    return `the value of ${name} has characters that a header cannot have, or more than 8192`;
  return undefined;
}

/** Whether the console sends the body with this method. */
export const sendsBody = ({ method, body }: Pick<CallRequest, "method" | "body">): boolean =>
  method !== "GET" && method !== "HEAD" && body !== "";

/** The path as it was typed: read as a URL, `//host` would be another host, and `/a/../b` another path. */
const urlFor = (base: string, path: string): string =>
  base.replace(/\/$/, "") + (path.startsWith("/") ? path : `/${path}`);

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The same request for a terminal or a program. */
export const asCommand = {
  curl: (url: string, request: CallRequest): string => {
    const { method, path, headers, body } = request;
    const sent = headersOf(headers);
    const has = (name: string) => sent.some(([each]) => each.toLowerCase() === name);
    // What curl would add by itself is not sent from here.
    const added = ["accept", "user-agent", ...(sendsBody(request) ? ["content-type"] : [])];
    return [
      "curl -i --path-as-is --globoff",
      ...(method === "GET" ? [] : [method === "HEAD" ? "--head" : `-X ${method}`]),
      // An empty value has a form of its own: with a colon, curl leaves the header out.
      ...sent.map(
        ([name, value]) => `-H ${quoted(value === "" ? `${name};` : `${name}: ${value}`)}`,
      ),
      ...added.filter((name) => !has(name)).map((name) => `-H ${quoted(`${name}:`)}`),
      // Unlike --data-binary, it takes a body that begins with @ for what it is.
      ...(sendsBody(request) ? [`--data-raw ${quoted(body)}`] : []),
      quoted(urlFor(url, path)),
    ].join(" ");
  },
  fetch: (url: string, request: CallRequest): string =>
    `await fetch(${JSON.stringify(urlFor(url, request.path))}, ${JSON.stringify(
      {
        method: request.method,
        headers: headersOf(request.headers),
        ...(sendsBody(request) && { body: request.body }),
      },
      null,
      2,
    )});`,
  kubectl: (
    { namespace, name }: { namespace: string; name: string },
    request: CallRequest,
  ): string =>
    [
      `kubectl port-forward -n ${namespace} service/${name} 3000:80 &`,
      asCommand.curl("http://localhost:3000/", request),
    ].join("\n"),
};
