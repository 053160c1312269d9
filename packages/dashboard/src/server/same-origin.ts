import { type IncomingMessage } from "node:http";

/** The names that programs on this machine use for a loopback address, without a port. */
const loopbackNames = ["localhost", "127.0.0.1", "[::1]"];

/**
 * A page of another site must not reach this server: neither by a host name that it has pointed here (DNS rebinding) nor with
 * cross-site requests. Returns why a request is refused, if it is.
 *
 * @param names further host names that this server is reached by, without ports
 */
export function originProblem(
  { headers }: Pick<IncomingMessage, "headers">,
  names: readonly string[] = [],
): string | undefined {
  const host = headers.host ?? "";
  const name = /^(\[[\da-f:]+\]|[\w.-]+)(?::\d{1,5})?$/i.exec(host)?.[1]?.toLowerCase();
  if (name === undefined || ![...loopbackNames, ...names].includes(name))
    return "this host name is not one of the dashboard's: on one machine, `spry up --dashboard-host NAME` adds it";
  const { origin } = headers;
  // Behind a proxy that ends TLS the page's scheme is https.
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`)
    return "requests from other sites are not allowed";
  const site = headers["sec-fetch-site"];
  const isNavigation = headers["sec-fetch-mode"] === "navigate";
  if (site !== undefined && site !== "same-origin" && site !== "none" && !isNavigation)
    return "requests from other sites are not allowed";
  return undefined;
}
