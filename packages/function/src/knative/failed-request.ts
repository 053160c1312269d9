/** The message of a gateway's log line about a request that a Pod had and did not answer; `spry logs --request` looks for it. */
export const failedMessage = "request was not answered";

/** The fields of that line. */
export interface FailedRequest {
  /** Of `X-Request-Id`. */
  requestId: string;
  method: string | undefined;
  /** Without the query. */
  path: string;
  /** As `Function default/hello` or `Route default/hello`. */
  destination: string;
  /** Address and port of the Pod. */
  pod: string | undefined;
  /** A clause: `the connection ended before there was a response`. */
  cause: string;
}
