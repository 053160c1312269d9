/**
 * The one seam between Spry and an API server: `fetch`, nothing more. A real cluster is an HTTPS
 * transport; the embedded engine is its own `fetch`, without a socket.
 *
 * A request's URL is absolute; a transport that has its own address ignores the origin.
 */
export type Transport = (request: Request) => Promise<Response>;

/** Origin for requests whose transport knows the address itself. */
export const transportOrigin = "http://kubernetes.internal";
