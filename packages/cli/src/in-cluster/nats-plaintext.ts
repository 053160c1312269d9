/** Where credentials for NATS servers would be sent in plaintext. */

/** One `tls://` server, or an authority for certificates, demands TLS of all of them. */
export const isForTls = (servers: readonly string[], authority: string | undefined): boolean =>
  Boolean(authority) || servers.some((each) => each.startsWith("tls:"));

/** A server that credentials would go to without TLS, and that is not on this machine. */
export function plainServer(
  servers: readonly string[],
  authority: string | undefined,
): string | undefined {
  if (isForTls(servers, authority)) return undefined;
  return servers.find((each) => !isLoopback(each));
}

/** A sentence that begins with the server. */
export const plainProblem = (server: string): string =>
  `${server} would get the credentials without TLS: use tls://, or set allowPlaintext: true where the network itself is protected`;

function isLoopback(server: string): boolean {
  const url = URL.parse(server.includes("://") ? server : `nats://${server}`);
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(url?.hostname ?? "");
}
